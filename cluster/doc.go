// Package cluster gives nodes names instead of addresses.
package cluster
