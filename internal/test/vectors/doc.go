// Package vectors tests the test vectors of the specification: they detect each codec with one
// wrong decision.
package vectors
