package vectors

const partsFile = "internal/carrier/reassembler.go"

// parts breaks the rules for messages in parts.
func parts() []mutant {
	return []mutant{
		{"parts: a first part says less than it holds", partFile, `r.UintFrom("whole", uint64(len(m.Bytes)), MaxPipe)`, `r.UintFrom("whole", 1, MaxPipe)`},
		{"parts: a first part that is the last is refused", partFile, `r.UintFrom("whole", uint64(len(m.Bytes)), MaxPipe)`, `r.UintFrom("whole", uint64(len(m.Bytes))+1, MaxPipe)`},
		{"parts: a first part may be small", partFile, `if len(m.Bytes) < LeastPart && m.Whole`, `if false && m.Whole`},
		{"parts: a first part of 1023 bytes", partFile, `if len(m.Bytes) < LeastPart && m.Whole`, `if len(m.Bytes) < LeastPart-1 && m.Whole`},
		{"parts: a first part of 1024 bytes is refused", partFile, `if len(m.Bytes) < LeastPart && m.Whole`, `if len(m.Bytes) <= LeastPart && m.Whole`},
		{"parts: a small message in one part is refused", partFile, `if len(m.Bytes) < LeastPart && m.Whole > uint64(len(m.Bytes)) {`, `if len(m.Bytes) < LeastPart {`},
		{"parts: a first part may be null", partFile, `if n == 3 {`, `if n >= 3 {`},
		{"parts: no part may be null", partFile, `m.GivenUp = r.Null()`, `m.GivenUp = false`},

		{"parts: a Control in parts", partFile, `r.UintFrom("message type", uint64(OpenType), uint64(CloseType))`, `r.UintFrom("message type", 0, uint64(CloseType))`},
		{"parts: a Part in parts", partFile, `r.UintFrom("message type", uint64(OpenType), uint64(CloseType))`, `r.UintFrom("message type", uint64(OpenType), uint64(PartType))`},
		{"parts: a Close in parts is refused", partFile, `r.UintFrom("message type", uint64(OpenType), uint64(CloseType))`, `r.UintFrom("message type", uint64(OpenType), uint64(BlockType))`},
		{"parts: an Open in parts is refused", partFile, `r.UintFrom("message type", uint64(OpenType), uint64(CloseType))`, `r.UintFrom("message type", uint64(BlockType), uint64(CloseType))`},
		{"parts: the head of a message need not be in the shortest form", partFile, `n := r.Array("the message")`, `n := r.Shorten().Array("the message")`},
		{"parts: a message of another pipe", partFile, `h.Pipe != m.Pipe {`, `false {`},
		{"parts: an Open has 1024 bytes besides its params", partFile, `around = MaxAroundOpen`, `_ = MaxAroundOpen`},
		{"parts: an Open has 6145 bytes besides its params", partFile, `around = MaxAroundOpen`, `around = MaxAroundOpen + 1`},
		{"parts: an Open has 6143 bytes besides its params", partFile, `around = MaxAroundOpen`, `around = MaxAroundOpen - 1`},
		{"parts: a message has 1025 bytes besides its content", partFile, `around := uint64(MaxAround)`, `around := uint64(MaxAround + 1)`},
		{"parts: a message has 1023 bytes besides its content", partFile, `around := uint64(MaxAround)`, `around := uint64(MaxAround - 1)`},
		{"parts: a message has any number of bytes besides its content", partFile, `n > whole-uint64(r.At), whole-n > around:`, `n > whole-uint64(r.At):`},
		{"parts: a content is longer than its frame", partFile, `n > whole-uint64(r.At), whole-n > around:`, `n < whole && whole-n > around:`},
		{"parts: a content is one byte longer than its frame", partFile, `n > whole-uint64(r.At), whole-n > around:`, `n > whole-uint64(r.At)+1, n < whole && whole-n > around:`},
		{"parts: a content up to the end of the frame is refused", partFile, `n > whole-uint64(r.At), whole-n > around:`, `n >= whole-uint64(r.At), whole-n > around:`},
		{"parts: any content is of a message in parts", partFile, `case major != cborhead.Bytes:`, `case major > cborhead.Other:`},
		{"parts: a text is the content of a message in parts", partFile, `case major != cborhead.Bytes:`, `case major != cborhead.Bytes && major != cborhead.Text:`},
		{"parts: a Close with an abort is no message in parts", partFile, `h.Abort = r.Simple() != cborhead.True`, `h.Abort = r.Simple() == 1`},
		{"parts: a Close with an abort has a content", partFile, `if !h.Abort {`, `if true {`},
		{"parts: the elements of an Open in parts are not counted", partFile, `arity(&r, n, 2+openFields, 3+openFields, "Open")`, `_ = n`},
		{"parts: the elements of a Block in parts are not counted", partFile, `arity(&r, n, 2+blockFields, 3+blockFields, "Block")`, `_ = n`},
		{"parts: the elements of a Close in parts are not counted", partFile, `arity(&r, n, 4, 6, "Close")`, `_ = n`},
		{"parts: the function of an Open in parts is not looked at", partFile, `r.Uint("function", maxFunction)`, `r.Skip()`},
		{"parts: the priority of an Open in parts is not looked at", partFile, `h.Priority = int8(r.Int("priority", maxPriority))`, `r.Skip()`},

		{"parts: a message above max message", partsFile, `if m.Whole > uint64(p.most) {`, `if false {`},
		{"parts: a message of one byte above max message", partsFile, `if m.Whole > uint64(p.most) {`, `if m.Whole > uint64(p.most)+1 {`},
		{"parts: a message of max message is refused", partsFile, `if m.Whole > uint64(p.most) {`, `if m.Whole >= uint64(p.most) {`},
		{"parts: a second message begins while one is unfinished", partsFile, `if p.unfinished[u.Pipe] != nil {`, `if false {`},
		{"parts: parts go beyond the whole", partsFile, `case got > u.whole:`, "case got > u.whole:\n\t\tgot = u.whole\n\tcase false:"},
		{"parts: parts go one byte beyond the whole", partsFile, `case got > u.whole:`, "case got == u.whole+1:\n\t\tgot = u.whole\n\tcase got > u.whole:"},
		{"parts: a small part in the middle", partsFile, `case got < u.whole && len(m.Bytes) < message.LeastPart:`, `case false:`},
		{"parts: a part of 1023 bytes in the middle", partsFile, `case got < u.whole && len(m.Bytes) < message.LeastPart:`, `case got < u.whole && len(m.Bytes) < message.LeastPart-1:`},
		{"parts: a part of 1024 bytes in the middle is refused", partsFile, `case got < u.whole && len(m.Bytes) < message.LeastPart:`, `case got < u.whole && len(m.Bytes) <= message.LeastPart:`},
		{"parts: a small last part is refused", partsFile, `case got < u.whole && len(m.Bytes) < message.LeastPart:`, `case len(m.Bytes) < message.LeastPart:`},
		{"parts: a message is complete before its last byte", partsFile, "if u.got = got; got < u.whole {", "if u.got = got; got < u.whole-1 {"},
		{"parts: a null part is not looked at", "internal/carrier/reader_parts.go", "if h, ok := p.drop(m.Pipe); ok {\n\t\t\tr.receiver.GivenUp(h)\n\t\t\treturn true, nil\n\t\t}\n\t\treturn true, r.receiver.Stray(m.Pipe)", "p.drop(m.Pipe)\n\t\treturn true, nil"},
		{"parts: a null part is refused", "internal/carrier/reader_parts.go", `if h, ok := p.drop(m.Pipe); ok {`, `if h, ok := p.drop(m.Pipe); ok && false {`},
		{"parts: what is given up goes on", "internal/carrier/reader_parts.go", `if h, ok := p.drop(m.Pipe); ok {`, `if h, ok := (message.Head{}), p.has(m.Pipe); ok {`},
		{"parts: a later part without a first one is ignored", "internal/carrier/reader_parts.go", `err = r.receiver.Stray(m.Pipe)`, `err = nil`},
		{"parts: the type of the parts is lost", "internal/carrier/reader_parts.go", `r.receiver.Receive(u.Type, u.mem.B[:u.whole]`, `r.receiver.Receive(message.BlockType, u.mem.B[:u.whole]`},
	}
}
