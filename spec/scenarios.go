// Package spec holds the files of the specification for programs.
package spec

import _ "embed"

// Scenarios is scenarios.json: sessions, step by step, in which every implementation of the
// protocol has to behave in the same way. scenarios.md describes the format.
//
//go:embed scenarios.json
var Scenarios []byte
