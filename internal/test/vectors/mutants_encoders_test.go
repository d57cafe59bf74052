package vectors

const (
	appendFile  = "internal/cborhead/append.go"
	entriesFile = "codec/message/entries.go"
)

// encoders write invalid frames.
func encoders() []mutant {
	list := []mutant{
		{"3-encoding: the length of a text is that of its characters", appendFile, `append(AppendHead(dst, Text, uint64(len(s))), s...)`, `append(AppendHead(dst, Text, uint64(len([]rune(s)))), s...)`},
		{"3-encoding: a negative integer is written one off", appendFile, `uint64(^n)`, `uint64(-n)`},
		{"3-encoding: a negative integer is written as its amount", appendFile, `AppendHead(dst, Negative, uint64(^n))`, `AppendHead(dst, Unsigned, uint64(-n))`},
		{"3-encoding: a number beyond 2^32 is cut", appendFile, `return AppendUint(dst, min(n, MaxNumber))`, `return AppendUint(dst, min(n, 1<<32-1))`},
		{"3-encoding: the largest number is cut", appendFile, `return AppendUint(dst, min(n, MaxNumber))`, `return AppendUint(dst, min(n, MaxNumber-1))`},
		{"meta: zeros are written", entriesFile, "if n == 0 {\n\t\treturn dst", "if n > MaxPipe {\n\t\treturn dst"},
		{"7-handshake: empty strings are written", entriesFile, "if len(b) == 0 {", "if b == nil {"},
		{"7-handshake: no codecs are written", entriesFile, "if len(texts) == 0 {\n\t\treturn dst\n\t}\n", ""},
		{"7-handshake: codecs are written as bytes", entriesFile, `dst = cborhead.AppendText(dst, s)`, `dst = cborhead.AppendBytes(dst, []byte(s))`},
		{"meta: an empty meta is written", metaFile, "if !m.on(t) {\n\t\treturn dst", "if !m.on(t) && t == BlockType && len(m.Metadata) > 0 {\n\t\treturn dst"},
		{"meta: a window of 0 is not written", metaFile, "if m.Stream {\n\t\tdst[at]++", "if m.Stream && m.Window > 0 {\n\t\tdst[at]++"},
		{"meta: an enclosing pipe 0 is not written", metaFile, "if m.Nested {\n\t\tdst[at]++", "if m.Nested && m.Within > 0 {\n\t\tdst[at]++"},
		{"meta: a window is always written", metaFile, "if m.Stream {\n\t\tdst[at]++", "if true {\n\t\tdst[at]++"},
		{"meta: the loss rate is cut", metaFile, `min(uint64(m.Loss), MaxLoss)`, `min(uint64(m.Loss), MaxLoss-1)`},
		{"meta: the TTL is cut", metaFile, `min(uint64(m.TTL), MaxTTL)`, `min(uint64(m.TTL), MaxTTL-1)`},
		{"meta: the loss rate is written behind the skipped count", metaFile, "dst = appendEntry(dst, at, lossKey, min(uint64(m.Loss), MaxLoss))\n\t\treturn appendEntry(dst, at, skippedKey, m.Skipped)",
			"dst = appendEntry(dst, at, skippedKey, m.Skipped)\n\t\treturn appendEntry(dst, at, lossKey, min(uint64(m.Loss), MaxLoss))"},
		{"meta: the trace context is written behind the key", metaFile, "dst = appendBytesEntry(dst, at, traceKey, m.Trace)\n\tdst = appendBytesEntry(dst, at, keyKey, m.Key)",
			"dst = appendBytesEntry(dst, at, keyKey, m.Key)\n\tdst = appendBytesEntry(dst, at, traceKey, m.Trace)"},
		{"meta: metadata is written before all others", metaFile, "dst = appendBytesEntry(dst, at, traceKey, m.Trace)", "dst = appendBytesEntry(dst, at, metadataKey, m.Metadata)\n\tm = &Meta{Trace: m.Trace, Key: m.Key, Nested: m.Nested, Within: m.Within, Stream: m.Stream, Window: m.Window}\n\tdst = appendBytesEntry(dst, at, traceKey, m.Trace)"},
		{"4-open-block-close: an empty detail is not written", closeFile, "if a.Detail != nil {\n\t\tdst", "if len(a.Detail) > 0 {\n\t\tdst"},
		{"4-open-block-close: refused is written as failed", closeFile, `outcome = cborhead.Null`, `outcome = cborhead.False`},
		{"4-open-block-close: a message is written in full", reasonFile, "message = truncate.Text(message, codec.MaxReason)\n", "\n"},
		{"4-open-block-close: a message is cut to 1023 bytes", reasonFile, "message = truncate.Text(message, codec.MaxReason)\n", "message = truncate.Text(message, codec.MaxReason-1)\n"},
		{"4-open-block-close: a message is cut inside of a character", reasonFile, "message = truncate.Text(message, codec.MaxReason)\n", "message = message[:min(len(message), codec.MaxReason)]\n"},
		{"4-open-block-close: a message is cut by its characters", reasonFile, "message = truncate.Text(message, codec.MaxReason)\n", "if all := []rune(message); len(all) > codec.MaxReason {\n\t\tmessage = string(all[:codec.MaxReason])\n\t}\n"},
		{"4-open-block-close: the end of a direction is an empty payload", blockFile, "return append(dst, cborhead.Null)", "return append(dst, cborhead.Bytes)"},
		{"4-open-block-close: an empty payload is the end of a direction", blockFile, "if m.End {\n\t\treturn append", "if m.End || len(m.Payload) == 0 {\n\t\treturn append"},
		{"5-controls: a Ping of nothing that the path holds", controlFile, "if c.Holds == 0 {", "if c.Holds == 0 && c.N > 1<<60 {"},
		{"5-controls: a Ping does not say what the path holds", controlFile, "if c.Holds == 0 {", "if true {"},
		{"5-controls: null is written as 0", controlFile, "if isNull {\n\t\treturn append(dst, cborhead.Null)", "if isNull {\n\t\treturn append(dst, 0)"},
		{"parts: whole is always written", partFile, "case m.Whole == 0:", "case m.Whole == 1:"},
		{"parts: what is given up is an empty part", partFile, "return append(m.appendStart(dst, 3), cborhead.Null)", "return append(m.appendStart(dst, 3), cborhead.Bytes)"},
		{"7-handshake: features are written behind the max message", syncFile, "dst = appendEntry(dst, at, featuresKey, c.Features)\n\tdst = appendEntry(dst, at, maxMessageKey, c.MaxMessage)",
			"dst = appendEntry(dst, at, maxMessageKey, c.MaxMessage)\n\tdst = appendEntry(dst, at, featuresKey, c.Features)"},
		{"7-handshake: the nested calls are written before the nested room", syncFile, "dst = appendEntry(dst, at, nestedRoomKey, c.NestedRoom)\n\tdst = appendEntry(dst, at, nestedCallsKey, c.NestedCalls)",
			"dst = appendEntry(dst, at, nestedCallsKey, c.NestedCalls)\n\tdst = appendEntry(dst, at, nestedRoomKey, c.NestedRoom)"},
		{"7-handshake: the extra credit is written before the nested calls", syncFile, "dst = appendEntry(dst, at, nestedCallsKey, c.NestedCalls)\n\treturn appendEntry(dst, at, extraKey, c.Extra)",
			"dst = appendEntry(dst, at, extraKey, c.Extra)\n\treturn appendEntry(dst, at, nestedCallsKey, c.NestedCalls)"},
		{"5-controls: extra credit of 0 is written", controlFile, "if !c.Opens || c.Extra == 0 {", "if !c.Opens {"},
		{"5-controls: extra credit is not written", controlFile, "if !c.Opens || c.Extra == 0 {", "if true {"},
		{"meta: initial credit is written without a window", metaFile, "\tif !m.Stream {\n\t\treturn dst\n\t}\n\treturn appendEntry(dst, at, initialKey", "\treturn appendEntry(dst, at, initialKey"},
		{"7-handshake: durations are cut", syncFile, "min(max(ms, 0), maxMillis)", "min(max(ms, 0), maxMillis-1)"},
	}
	for _, b := range []struct{ number, bound, then string }{
		{"24", "24", "append(dst, major|byte(n))"}, {"256", "1<<8", "append(dst, major|24"},
		{"65536", "1<<16", "binary"}, {"2^32", "1<<32", "binary"},
	} {
		at := func(bound string) string { return "case n " + bound + ":\n\t\treturn " + b.then }
		list = append(list,
			mutant{"3-encoding: the number before " + b.number + " is written too long", appendFile, at("< " + b.bound), at("< " + b.bound + "-1")},
			mutant{"3-encoding: the number " + b.number + " is written too short", appendFile, at("< " + b.bound), at("<= " + b.bound)},
		)
	}
	return list
}
