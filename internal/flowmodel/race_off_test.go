//go:build !race

package flowmodel_test

const raceDetector = false
