//go:build !race

package classicwire_test

const raceDetector = false
