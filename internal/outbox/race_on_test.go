//go:build race

package outbox_test

// raceDetector says that memory is not what it is without the detector.
const raceDetector = true
