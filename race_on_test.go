//go:build race

package asterisque_test

// raceDetector says that memory is not what it is without the detector.
const raceDetector = true
