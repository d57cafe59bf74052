//go:build race

package classicwire_test

// raceDetector says that everything takes several times as long.
const raceDetector = true
