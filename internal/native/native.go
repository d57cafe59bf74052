// Package native marks the wires of this module that run no application code.
package native

// Wire is a wire.Wire with methods that neither panic nor take long. Only wires of this module have
// a [Mark].
type Wire interface{ native() }

// Mark is embedded by such a Wire.
type Mark struct{}

func (Mark) native() {}
