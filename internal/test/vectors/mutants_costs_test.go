package vectors

const costFile = "codec/message/cost.go"

// costs breaks the rules for the costs of messages.
func costs() []mutant {
	list := []mutant{
		{"costs: params are free", costFile, `uint64(len(m.Params)) + uint64(strings)`, `uint64(strings)`},
		{"costs: strings of the meta are free", costFile, `uint64(len(m.Params)) + uint64(strings)`, `uint64(len(m.Params)) + 0*uint64(strings)`},
		{"costs: an Open has no overhead", costFile, `uint64(strings) + overhead`, `uint64(strings)`},
		{"costs: a unary Open pays the early credit", costFile, `if m.Meta.Stream {`, `if true {`},
		{"costs: the Open of a stream does not pay the early credit", costFile, `if m.Meta.Stream {`, `if false {`},
		{"costs: the Open of a stream with a window of 0 is a unary one", costFile, `if m.Meta.Stream {`, `if m.Meta.Window > 0 {`},
		{"costs: the Open of a stream pays its window", costFile, `cost += early`, `cost += m.Meta.Window`},
		{"costs: a trace context is free before it is sent", costFile, `len(m.Trace) + len(m.Key)`, `len(m.Key)`},
		{"costs: a key is free before it is sent", costFile, `len(m.Trace) + len(m.Key)`, `len(m.Trace)`},
		{"costs: metadata is free before it is sent", costFile, ` + len(m.Metadata)`, ``},
		{"costs: the end of a direction costs the overhead", costFile, `if m.End {`, `if false {`},
		{"costs: an empty payload is free", costFile, `if m.End {`, `if m.End || len(m.Payload) == 0 {`},
		{"costs: a payload is free", costFile, `uint64(len(m.Payload)) + overhead`, `overhead`},
		{"costs: a Block has no overhead", costFile, `uint64(len(m.Payload)) + overhead`, `uint64(len(m.Payload))`},
		{"costs: a trace context is free", metaFile, `strings += len(m.Trace)`, `strings += 0`},
		{"costs: a key is free", metaFile, `strings += len(m.Key)`, `strings += 0`},
		{"costs: metadata is free", metaFile, `strings += len(m.Metadata)`, `strings += 0`},
		{"costs: strings of unknown keys are free", metaFile, `strings += r.Skip()`, `r.Skip()`},
		{"costs: unknown keys cost all their bytes", metaFile, `strings += r.Skip()`, "at := r.At\n\t\t\tr.Skip()\n\t\t\tstrings += r.At - at"},
		{"costs: strings under keys of Blocks are free", metaFile, `strings += r.Skip()`, "if n := r.Skip(); key > skippedKey {\n\t\t\t\tstrings += n\n\t\t\t}"},
		{"costs: ignored bytes are free", reader, `return len(r.take(at, n))`, "if b := r.take(at, n); major == Text {\n\t\t\treturn len(b)\n\t\t}"},
		{"costs: ignored text is free", reader, `return len(r.take(at, n))`, "if b := r.take(at, n); major == Bytes {\n\t\t\treturn len(b)\n\t\t}"},
	}
	for _, in := range [][2]string{{"arrays", "n"}, {"maps", "2*n"}, {"tags", "1"}} {
		skip := "r.skipItems(at, " + in[1] + ", depth)"
		list = append(list, mutant{"costs: strings inside of " + in[0] + " cost", reader, skip, "begin := r.At\n\t\t" + skip + "\n\t\treturn max(0, r.At-begin)"})
	}
	return list
}
