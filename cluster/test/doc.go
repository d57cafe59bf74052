// Package test is the root of the module with the tests of cluster and wire/natswire that need a
// NATS server. Programs with these packages do not have the server in their module graph.
package test
