//go:build race

package wire_test

// raceEnabled says that the race detector is on, with which a sync.Pool loses some of what it is
// given on purpose.
const raceEnabled = true
