//go:build !race

// Package race reports whether the race detector is enabled. With the race detector, tests take
// longer, use other amounts of memory, and lose objects from pools.
package race

// Enabled reports whether the race detector is enabled.
const Enabled = false
