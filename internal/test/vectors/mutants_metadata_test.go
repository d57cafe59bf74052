package vectors

const metadataFile = "codec/message/metadata.go"

// metadata breaks the rules for the metadata of calls, read and written.
func metadata() []mutant {
	return []mutant{
		{"metadata: a key comes twice", metadataFile, `case i > 0 && order == 0:`, `case false:`},
		{"metadata: keys descend", metadataFile, `case i > 0 && order > 0:`, `case false:`},
		{"metadata: the second key is not compared", metadataFile, `case i > 0 && order > 0:`, `case i > 1 && order > 0:`},
		{"metadata: only the second key is compared", metadataFile, `case i > 0 && order > 0:`, `case i == 1 && order > 0:`},
		{"metadata: keys are ordered by their bytes alone", metadataFile, `switch order := compareKeys(before, key); {`, `switch order := bytes.Compare(before, key); {`},
		{"metadata: keys are ordered by their lengths alone", metadataFile, `switch order := compareKeys(before, key); {`, `switch order := cmp.Or(cmp.Compare(len(before), len(key)), -1+len(key)/1000*bytes.Compare(before, key)); {`},
		{"metadata: keys of one length in any order", metadataFile, `case i > 0 && order > 0:`, `case i > 0 && order > 0 && len(before) != len(key):`},
		{"metadata: keys are ordered as UTF-16", metadataFile, `switch order := compareKeys(before, key); {`,
			`switch order := cmp.Or(cmp.Compare(len(before), len(key)), bytes.Compare(bytes.ReplaceAll(before, []byte{0xf0}, []byte{0xed, 0xff}), bytes.ReplaceAll(key, []byte{0xf0}, []byte{0xed, 0xff}))); {`},
		{"metadata: bytes behind the map", metadataFile, `if r.Err == nil && r.At < len(r.Data) {`, `if false {`},
		{"metadata: a key of no bytes", metadataFile, `case key == 0:`, `case false:`},
		{"metadata: a key of one byte is refused", metadataFile, `case key == 0:`, `case key <= 1:`},
		{"metadata: any number of entries", metadataFile, `case c.entries > MaxMetadataEntries:`, `case false:`},
		{"metadata: 33 entries", metadataFile, `case c.entries > MaxMetadataEntries:`, `case c.entries > MaxMetadataEntries+1:`},
		{"metadata: 32 entries are refused", metadataFile, `case c.entries > MaxMetadataEntries:`, `case c.entries >= MaxMetadataEntries:`},
		{"metadata: any number of bytes", metadataFile, `case c.bytes > MaxMetadata:`, `case false:`},
		{"metadata: 4097 bytes", metadataFile, `case c.bytes > MaxMetadata:`, `case c.bytes > MaxMetadata+1:`},
		{"metadata: 4096 bytes are refused", metadataFile, `case c.bytes > MaxMetadata:`, `case c.bytes >= MaxMetadata:`},
		{"metadata: keys do not count", metadataFile, `c.bytes += key + value`, `c.bytes += value`},
		{"metadata: values do not count", metadataFile, `c.bytes += key + value`, `c.bytes += key`},
		{"metadata: heads count", metadataFile, `c.bytes += key + value`, `c.bytes += key + value + 2`},
		{"metadata: each entry counts by itself", metadataFile, `c.bytes += key + value`, `c.bytes = key + value`},
		{"metadata: a text is read as bytes", metadataFile, `valueOf(value, text)`, `valueOf(value, text && false)`},
		{"metadata: bytes are read as a text", metadataFile, `valueOf(value, text)`, `valueOf(value, text || true)`},
		{"metadata: a map of no entries is refused", metadataFile, `r := cborhead.Reader{Data: b}`, "r := cborhead.Reader{Data: b}\n\tif len(b) == 1 {\n\t\treturn badMetadata(\"empty\")\n\t}"},
		{"metadata: no bytes are an empty map", metadataFile, `r := cborhead.Reader{Data: b}`, "r := cborhead.Reader{Data: b}\n\tif len(b) == 0 {\n\t\treturn nil\n\t}"},
		{"metadata: the map need not be in the shortest form", metadataFile, `range r.Map("it", len(b))`, `range r.Shorten().Map("it", len(b))`},
		{"metadata: the map may have a tag", metadataFile, `range r.Map("it", len(b))`, `range r.Untag().Map("it", len(b))`},
		{"metadata: the map may be of indefinite length", metadataFile, `range r.Map("it", len(b))`, `range r.Definite().Map("it", len(b))`},
		{"metadata: a key need not be in the shortest form", metadataFile, `r.UTF8("the key")`, `r.Shorten().UTF8("the key")`},
		{"metadata: a key may have a tag", metadataFile, `r.UTF8("the key")`, `r.Untag().UTF8("the key")`},
		{"metadata: a key may be of indefinite length", metadataFile, `r.UTF8("the key")`, `r.Definite().UTF8("the key")`},
		{"metadata: a key may be bytes", metadataFile, `r.UTF8("the key")`, `r.As(cborhead.Bytes, cborhead.Text).UTF8("the key")`},
		{"metadata: a value need not be in the shortest form", metadataFile, `r.Str("the value")`, `r.Shorten().Str("the value")`},
		{"metadata: a value may have a tag", metadataFile, `r.Str("the value")`, `r.Untag().Str("the value")`},
		{"metadata: a value may be of indefinite length", metadataFile, `r.Str("the value")`, `r.Definite().Str("the value")`},
		{"metadata: a value of no bytes is refused", metadataFile, `wrong := c.add(len(key), len(value))`, "wrong := c.add(len(key), len(value))\n\t\tif len(value) == 0 {\n\t\t\twrong = \"empty\"\n\t\t}"},

		{"metadata: a map without entries is written", metadataFile, "if len(m) == 0 {\n\t\treturn dst, nil", "if len(m) == 0 {\n\t\treturn append(dst, cborhead.Map), nil"},
		{"metadata: keys are written by their bytes alone", metadataFile, `return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })`, `return cmp.Compare(a, b) })`},
		{"metadata: keys are written by their lengths alone", metadataFile, `return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })`, `return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(b, a)) })`},
		{"metadata: bytes are written as text", metadataFile, `dst = cborhead.AppendBytes(dst, v)`, `dst = cborhead.AppendText(dst, string(v))`},
		{"metadata: text is written as bytes", metadataFile, "case string:\n\t\t\tdst = cborhead.AppendText(dst, v)", "case string:\n\t\t\tdst = cborhead.AppendBytes(dst, []byte(v))"},
	}
}
