//go:build !race

// Package race tells tests whether the race detector is on: with it everything takes longer, memory
// is not what it is otherwise, and pools forget.
package race

// Enabled says that the race detector is on.
const Enabled = false
