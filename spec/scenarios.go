// Package spec holds those files of the specification that programs read.
package spec

import _ "embed"

// Scenarios is scenarios.json: sessions, step by step, that every implementation of the protocol
// has to go through in the same way. scenarios.md says how to read it.
//
//go:embed scenarios.json
var Scenarios []byte
