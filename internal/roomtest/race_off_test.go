//go:build !race

package roomtest_test

const raceDetector = false
