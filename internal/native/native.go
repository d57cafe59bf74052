// Package native marks the wires of this module that have no code of the application in them.
package native

// Wire is a wire.Wire whose methods neither panic nor take their time: only this module's have a
// [Mark].
type Wire interface{ native() }

// Mark is embedded by such a Wire.
type Mark struct{}

func (Mark) native() {}
