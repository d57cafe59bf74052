//go:build race

package roomtest_test

// raceDetector says that everything takes longer.
const raceDetector = true
