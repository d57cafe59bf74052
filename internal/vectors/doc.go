// Package vectors proves the test vectors of the specification: a codec with one wrong decision
// does not survive them.
package vectors
