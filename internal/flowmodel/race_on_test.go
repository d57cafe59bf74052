//go:build race

package flowmodel_test

// raceDetector says that everything takes longer.
const raceDetector = true
