package vectors

import "strings"

// messages breaks the rules for the fields of messages, for arrays and for the meta.
func messages() []mutant {
	list := []mutant{
		{"3-encoding: elements behind those that are listed are ignored", frameFile,
			"if err := r.End(); err != nil {", "for r.Err == nil && r.At < len(r.Data) {\n\t\tr.Skip()\n\t}\n\tif err := r.End(); err != nil {"},
		{"3-encoding: the number of elements is not looked at", frameFile, `if n < lo || n > hi {`, `if false {`},
		{"3-encoding: there may be more elements", frameFile, `if n < lo || n > hi {`, `if n < lo {`},
		{"3-encoding: there may be less elements", frameFile, `if n < lo || n > hi {`, `if n > hi {`},
		{"3-encoding: a message of another type is read", frameFile, `got != t {`, `false {`},
		{"4-open-block-close: undefined ends a direction", blockFile, `if m.End = r.Null(); !m.End {`,
			"if m.End = r.Null(); !m.End && r.At < len(r.Data) && r.Data[r.At] == cborhead.Null|1 {\n\t\tr.At++\n\t\tm.End = true\n\t} else if !m.End {"},
		{"4-open-block-close: an empty payload ends a direction", blockFile, `if m.End = r.Null(); !m.End {`, `if m.End = r.Null() || r.Err == nil && r.At < len(r.Data) && r.Data[r.At] == 0x40; !m.End {`},
		{"4-open-block-close: a Block that ends its direction has no meta", blockFile, `if n > 2+blockFields {`, `if n > 2+blockFields && !m.End {`},
		{"4-open-block-close: the meta of a Block is not looked into", blockFile, `readMeta(&r, BlockType, &m.Meta)`, `r.Skip()`},
		{"4-open-block-close: the meta of an Open is not looked into", openFile, `readMeta(&r, OpenType, &m.Meta)`, `r.Skip()`},
		{"4-open-block-close: undefined is an outcome", closeFile, `case cborhead.Null:`, `case cborhead.Null, cborhead.Null | 1:`},
		{"4-open-block-close: any outcome but true is a failure", closeFile, "\tdefault:\n\t\tr.Fail(at, \"outcome is neither true, false nor null\")", "\tdefault:\n\t\t_ = at\n\t\tm.Abort = readAbort(&r, n, codec.MaybeRan)"},
		{"4-open-block-close: failed and refused are the same", closeFile, `readAbort(&r, n, codec.Refused)`, `readAbort(&r, n, codec.MaybeRan)`},
		{"4-open-block-close: an empty detail is none", closeFile, `a.Detail = r.Bytes("detail")`, "if a.Detail = r.Bytes(\"detail\"); len(a.Detail) == 0 {\n\t\t\ta.Detail = nil\n\t\t}"},
		{"4-open-block-close: a message above 1024 bytes is refused", reasonFile, `r.UTF8("message")`,
			`func() []byte { b := r.UTF8("message"); if len(b) > codec.MaxReason { r.Fail(r.At, "long") }; return b }()`},
		{"4-open-block-close: a message of 1024 bytes is refused", reasonFile, `r.UTF8("message")`,
			`func() []byte { b := r.UTF8("message"); if len(b) == codec.MaxReason { r.Fail(r.At, "long") }; return b }()`},
		{"meta: meta is one entry more", metaFile, `r.Map("meta", maxMetaEntries)`, `r.Map("meta", maxMetaEntries+7)`},
		{"meta: an empty meta is refused", metaFile, `r.Map("meta", maxMetaEntries) {`, `func() int { n := r.Map("meta", maxMetaEntries); if n == 0 { r.Fail(r.At, "empty") }; return n }() {`},
		{"meta: keys of a Block may descend", metaFile, `key = r.Key(i, key)`, "if t == BlockType {\n\t\t\ti = 0\n\t\t}\n\t\tkey = r.Key(i, key)"},
		{"meta: keys of an Open may descend", metaFile, `key = r.Key(i, key)`, "if t == OpenType {\n\t\t\ti = 0\n\t\t}\n\t\tkey = r.Key(i, key)"},
		{"meta: unknown keys may descend", metaFile, `key = r.Key(i, key)`, "before := key\n\t\tif key > initialKey {\n\t\t\tbefore = initialKey\n\t\t}\n\t\tkey = r.Key(i, before)"},
		{"meta: unknown keys are refused", metaFile, `strings += r.Skip()`, "r.Fail(r.At, \"unknown\")"},
		{"meta: a loss rate of 0 is refused", metaFile, `r.Uint("loss rate", MaxLoss)`, `r.UintFrom("loss rate", 1, MaxLoss)`},
		{"meta: a skipped count has 32 bits", metaFile, `r.Uint("skipped count", MaxPipe)`, `r.Uint("skipped count", 1<<32-1)`},
		{"meta: a window of 0 is none", metaFile, `m.Window, m.Stream = r.Uint("window", MaxPipe), true`, "m.Window = r.Uint(\"window\", MaxPipe)\n\t\t\tm.Stream = m.Window > 0"},
		{"meta: pipe 0 encloses no call", metaFile, `m.Within, m.Nested = r.Uint("enclosing pipe id", MaxPipe), true`, "m.Within = r.Uint(\"enclosing pipe id\", MaxPipe)\n\t\t\tm.Nested = m.Within > 0"},
		{"5-controls: what an unknown Control holds is not looked at", controlFile, "\t\tr.Skip()\n\t}\n\treturn UnknownControl", "\t\tr.At = len(r.Data)\n\t}\n\treturn UnknownControl"},
		{"5-controls: an unknown Control holds one element at most", controlFile, `for ; n > 2 && r.Err == nil; n-- {`, `for ; n > 2 && r.Err == nil; n = 2 {`},
		{"5-controls: an unknown Control has 23 elements at most", controlFile, `for ; n > 2 && r.Err == nil; n-- {`, "if n > 23 {\n\t\tr.Fail(0, \"many\")\n\t}\n\tfor ; n > 2 && r.Err == nil; n-- {"},
		{"5-controls: Control 0 is refused", controlFile, `switch code {`, "switch code {\n\tcase 0:\n\t\tr.Fail(0, \"0\")"},
		{"5-controls: Control 10 is refused", controlFile, `switch code {`, "switch code {\n\tcase 10:\n\t\tr.Fail(0, \"10\")"},
		{"5-controls: Control 11 is refused", controlFile, `switch code {`, "switch code {\n\tcase 11:\n\t\tr.Fail(0, \"11\")"},
		{"5-controls: Control 12 is refused", controlFile, `switch code {`, "switch code {\n\tcase 12:\n\t\tr.Fail(0, \"12\")"},
		{"5-controls: Controls above 127 are refused", controlFile, `switch code {`, "if code > 127 {\n\t\tr.Fail(0, \"large\")\n\t}\n\tswitch code {"},
		{"5-controls: a Ping's second number may be anything", controlFile, `p.Holds = r.UintFrom("bytes of the path", 1, MaxPipe)`, `r.Skip()`},
		{"5-controls: undefined in place of a pipe", frameFile, "if r.Null() {\n\t\treturn 0, true", "if r.At < len(r.Data) && r.Data[r.At] == cborhead.Null|1 {\n\t\tr.At++\n\t\treturn 0, true\n\t}\n\tif r.Null() {\n\t\treturn 0, true"},
		{"5-controls: false in place of a pipe", frameFile, "if r.Null() {\n\t\treturn 0, true", "if r.At < len(r.Data) && r.Data[r.At] == cborhead.False {\n\t\tr.At++\n\t\treturn 0, true\n\t}\n\tif r.Null() {\n\t\treturn 0, true"},
		{"5-controls: a Credit has to name a pipe", controlFile, `pipe, opens := readPipeOrNull(r)`, `pipe, opens := r.Uint("pipe id", MaxPipe), false`},
		{"5-controls: a Drain has to name a pipe", controlFile, `last, none := readPipeOrNull(r)`, `last, none := r.Uint("pipe id", MaxPipe), false`},
		{"5-controls: a Stop may be for null", controlFile, `Stop{Pipe: r.Uint("pipe id", MaxPipe)}`, `Stop{Pipe: r.As(cborhead.Null&^31, cborhead.Unsigned).Uint("pipe id", MaxPipe)}`},
	}
	return append(append(list, arities()...), meanings()...)
}

// arities moves the bounds of the number of elements of each message.
func arities() (list []mutant) {
	for _, a := range []struct{ section, what, file, old, less, more string }{
		{"4-open-block-close", "an Open", openFile, `OpenType, 2+openFields, 3+openFields)`, `OpenType, 1+openFields, 3+openFields)`, `OpenType, 2+openFields, 4+openFields)`},
		{"4-open-block-close", "a Block", blockFile, `BlockType, 2+blockFields, 3+blockFields)`, `BlockType, 1+blockFields, 3+blockFields)`, `BlockType, 2+blockFields, 4+blockFields)`},
		{"4-open-block-close", "a Close with a result", closeFile, `arity(&r, n, 4, 4,`, ``, `arity(&r, n, 4, 5,`},
		{"4-open-block-close", "a Close with an abort", closeFile, `arity(r, n, 5, 6,`, `arity(r, n, 4, 6,`, ``},
		{"parts", "a Part", partFile, `start(&r, PartType, 3, 4)`, `start(&r, PartType, 2, 4)`, `start(&r, PartType, 3, 5)`},
		{"5-controls", "a Control", controlFile, `start(&r, ControlType, 2, math.MaxInt)`, `start(&r, ControlType, 1, math.MaxInt)`, ``},
		{"7-handshake", "a Sync", controlFile, `arity(r, n, 4, 4, "Sync")`, "3, 4", "4, 5"},
		{"5-controls", "a Ping", controlFile, `arity(r, n, 3, 4, "Ping")`, "2, 4", "3, 5"},
		{"5-controls", "a Pong", controlFile, `arity(r, n, 3, 3, "Pong")`, "2, 3", "3, 4"},
		{"5-controls", "a Credit", controlFile, `arity(r, n, 4, 5, "Credit")`, "3, 5", "4, 6"},
		{"5-controls", "an Ack", controlFile, `arity(r, n, 3, 3, "Ack")`, "2, 3", "3, 4"},
		{"5-controls", "a Drain", controlFile, `arity(r, n, 3, 3, "Drain")`, "2, 3", "3, 4"},
		{"5-controls", "a Close of the session", controlFile, `arity(r, n, 4, 4, "Close of the session")`, "3, 4", "4, 5"},
		{"5-controls", "a Stop", controlFile, `arity(r, n, 3, 3, "Stop")`, "2, 3", "3, 4"},
		{"5-controls", "a Skip", controlFile, `arity(r, n, 4, 4, "Skip")`, "3, 4", "4, 5"},
	} {
		within := func(bounds string) string {
			if at := strings.Index(a.old, "n, "); len(bounds) == len("3, 4") {
				return a.old[:at+3] + bounds + a.old[at+7:]
			}
			return bounds
		}
		for _, to := range [][2]string{{" may say that it has one element less", a.less}, {" may say that it has one element more", a.more}} {
			if to[1] != "" {
				list = append(list, mutant{a.section + ": " + a.what + to[0], a.file, a.old, within(to[1])})
			}
		}
	}
	return list
}

// meanings gives a meaning to keys of the meta that have none.
func meanings() (list []mutant) {
	for _, k := range []struct{ name, old, kind string }{
		{"a loss rate", `key == lossKey && t == BlockType`, "an Open"}, {"a skipped count", `key == skippedKey && t == BlockType`, "an Open"},
		{"a trace context", `key == traceKey && t == OpenType`, "a Block"}, {"an idempotency key", `key == keyKey && t == OpenType`, "a Block"},
		{"an enclosing call", `key == withinKey && t == OpenType`, "a Block"}, {"a window", `key == windowMetaKey && t == OpenType`, "a Block"},
		{"metadata", `key == metadataKey && t == OpenType`, "a Block"},
	} {
		known, _, _ := strings.Cut(k.old, " && ")
		list = append(list,
			mutant{"meta: " + k.name + " of " + k.kind + " is looked at", metaFile, k.old, known},
			mutant{"meta: " + k.name + " is ignored", metaFile, k.old, "false"},
		)
	}
	return append(list,
		mutant{"meta: a TTL is ignored", metaFile, `case key == ttlKey:`, `case false:`},
		mutant{"meta: the TTL of a Block is ignored", metaFile, `case key == ttlKey:`, `case key == ttlKey && t == OpenType:`},
	)
}
