//go:build race

package wire_test

// raceEnabled reports whether the race detector is on, with which a sync.Pool drops some values on
// purpose.
const raceEnabled = true
