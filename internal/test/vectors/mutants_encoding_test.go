package vectors

const reader = "internal/cborhead/reader.go"

// encoding breaks the rules for single items.
func encoding() []mutant {
	list := []mutant{
		{"3-encoding: bytes behind the frame are not looked at", reader, `r.At != len(r.Data) {`, `false {`},
		{"3-encoding: what is cut off in front of an item is a 0", reader,
			"r.Fail(at, \"ends in the middle of the message\")\n\t\treturn Other, 0", `return Unsigned, 0`},
		{"3-encoding: what is cut off in a head is a 0", reader,
			"if len(rest) < size {\n\t\tr.Fail(at, \"ends in the middle of the message\")\n\t\treturn 0", "if len(rest) < size {\n\t\tr.At = len(r.Data)\n\t\treturn shortest[first&3]"},
		{"3-encoding: a string that is cut is what there is of it", reader,
			"r.Fail(at, \"ends in the middle of the message\")\n\t\treturn nil", `n = uint64(len(r.Data) - r.At)`},
		{"3-encoding: length 28 is read as one byte", reader, `first&31 > 27 {`, `first&31 > 28 {`},
		{"3-encoding: lengths 28 to 30 are read as those of less", reader, `first&31 > 27 {`, `first&31 > 30 {`},
		{"3-encoding: a two-byte simple value below 32", reader, `case first == Other|24 && n < 32:`, `case false:`},
		{"3-encoding: simple value 31 in two bytes", reader, `case first == Other|24 && n < 32:`, `case first == Other|24 && n < 31:`},
		{"3-encoding: simple values below 24 only are refused in two bytes", reader, `case first == Other|24 && n < 32:`, `case first == Other|24 && n < 24:`},
		{"3-encoding: simple value 32 is refused", reader, `case first == Other|24 && n < 32:`, `case first == Other|24 && n <= 32:`},
		{"3-encoding: two-byte simple values are refused", reader, `case first == Other|24 && n < 32:`, `case first == Other|24:`},
		{"3-encoding: simple value 255 is refused", reader, `case first == Other|24 && n < 32:`, `case first == Other|24 && (n < 32 || n == 255):`},
		{"3-encoding: floating point of 16 bits is refused", reader, `case first == Other|24 && n < 32:`, `case first == Other|24 && n < 32 || first == Other|25:`},
		{"3-encoding: floating point of 32 bits is refused", reader, `case first == Other|24 && n < 32:`, `case first == Other|24 && n < 32 || first == Other|26:`},
		{"3-encoding: floating point of 64 bits is refused", reader, `case first == Other|24 && n < 32:`, `case first == Other|24 && n < 32 || first == Other|27:`},
		{"3-encoding: floating point of 16 bits is measured as an integer", reader, `case first&^31 != Other && n < shortest`, `case (first&^31 != Other || first == Other|25) && n < shortest`},
		{"3-encoding: floating point of 32 bits is measured as an integer", reader, `case first&^31 != Other && n < shortest`, `case (first&^31 != Other || first == Other|26) && n < shortest`},
		{"3-encoding: floating point of 64 bits is measured as an integer", reader, `case first&^31 != Other && n < shortest`, `case (first&^31 != Other || first == Other|27) && n < shortest`},
		{"3-encoding: lengths of strings have 32 bits", reader, "\tif n > uint64(len(r.Data)-r.At) {", "\tn = uint64(uint32(n))\n\tif n > uint64(len(r.Data)-r.At) {"},
		{"3-encoding: numbers of elements have 32 bits", reader, "\tmajor, n := r.Head()\n\tswitch {\n\tcase major != want:", "\tmajor, n := r.Head()\n\tn = uint64(uint32(n))\n\tswitch {\n\tcase major != want:"},
		{"3-encoding: a key is not compared with the one before", reader, `if i > 0 && key <= before {`, `if false {`},
		{"3-encoding: a key may come twice", reader, `if i > 0 && key <= before {`, `if i > 0 && key < before {`},
		{"3-encoding: keys may descend", reader, `if i > 0 && key <= before {`, `if i > 0 && key == before {`},
		{"3-encoding: the second key is not compared", reader, `if i > 0 && key <= before {`, `if i > 1 && key <= before {`},
		{"3-encoding: only the second key is compared", reader, `if i > 0 && key <= before {`, `if i == 1 && key <= before {`},
		{"3-encoding: keys are compared by their low byte", reader, `if i > 0 && key <= before {`, `if i > 0 && byte(key) <= byte(before) {`},
		{"3-encoding: keys are compared as numbers of 32 bits", reader, `if i > 0 && key <= before {`, `if i > 0 && int32(key) <= int32(before) {`},
		{"3-encoding: key 0 is refused", reader, `if i > 0 && key <= before {`, `if key <= before {`},
		{"3-encoding: a key that is text is ignored", reader, "func (r *Reader) Key(i int, before uint64) uint64 {",
			"func (r *Reader) Key(i int, before uint64) uint64 {\n\tif r.At < len(r.Data) && r.Data[r.At]&^31 == Text {\n\t\tr.Skip()\n\t\treturn 1000\n\t}"},
		{"3-encoding: a negative key is its argument", reader, "func (r *Reader) Key(i int, before uint64) uint64 {", "func (r *Reader) Key(i int, before uint64) uint64 {\n\tr.As(Negative, Unsigned)"},
		{"3-encoding: undefined counts as null", reader, `r.Data[r.At] != Null {`, `r.Data[r.At]|1 != Null|1 {`},
		{"3-encoding: false counts as null", reader, `r.Data[r.At] != Null {`, `r.Data[r.At] != Null && r.Data[r.At] != False {`},
		{"3-encoding: null in two bytes", reader, `func (r *Reader) Null() bool {`, "func (r *Reader) Null() bool {\n\tr.Shorten()"},
		{"3-encoding: null with a tag", reader, `func (r *Reader) Null() bool {`, "func (r *Reader) Null() bool {\n\tr.Untag()"},
		{"3-encoding: an outcome in two bytes", reader, `func (r *Reader) Simple() byte {`, "func (r *Reader) Simple() byte {\n\tr.Shorten()"},
		{"3-encoding: an outcome with a tag", reader, `func (r *Reader) Simple() byte {`, "func (r *Reader) Simple() byte {\n\tr.Untag()"},
		{"3-encoding: a negative number is its argument", reader, "\tcase major != Unsigned:", "\tcase major != Unsigned && major != Negative:"},
		{"3-encoding: bytes are a number, by their length", reader, "\tcase major != Unsigned:", "\tcase major != Unsigned && (major != Bytes || n > 0):"},
		{"3-encoding: null is the number 0", reader, "\tcase major != Unsigned:", "\tcase major == Other && n == 22:\n\t\treturn lo\n\tcase major != Unsigned:"},
		{"3-encoding: text passes for bytes", reader, `	if major != want {`, `	if major != want && (want != Bytes || major != Text) {`},
		{"3-encoding: bytes pass for text", reader, `	if major != want {`, `	if major != want && (want != Text || major != Bytes) {`},
		{"3-encoding: null is an empty string", reader, `	if major != want {`, "	if major == Other && n == 22 {\n\t\treturn nil\n\t}\n	if major != want {"},
		{"3-encoding: an array passes for a map", reader, "\tcase major != want:", "\tcase major != want && (want != Map || major != Array):"},
		{"3-encoding: a map passes for an array", reader, "\tcase major != want:", "\tcase major != want && (want != Array || major != Map):"},
		{"3-encoding: null is an empty map", reader, "\tcase major != want:", "\tcase major == Other && n == 22 && want == Map:\n\t\treturn 0\n\tcase major != want:"},
		{"4-open-block-close: an integer below its range", reader, "\tcase n > uint64(limit):", "\tcase major == Unsigned && n > uint64(limit):"},
		{"4-open-block-close: an integer above its range", reader, "\tcase n > uint64(limit):", "\tcase major == Negative && n > uint64(limit):"},
		{"4-open-block-close: the lowest integer is refused", reader, "\tcase n > uint64(limit):", "\tcase n > uint64(limit), major == Negative && n == uint64(limit):"},
		{"4-open-block-close: the highest integer is refused", reader, "\tcase n > uint64(limit):", "\tcase n > uint64(limit), major == Unsigned && n == uint64(limit):"},
		{"4-open-block-close: negative integers are refused", reader, "\tcase n > uint64(limit):", "\tcase n > uint64(limit), major == Negative:"},
		{"4-open-block-close: a negative integer is one off", reader, `return ^int64(n)`, `return -int64(n)`},
	}
	for _, size := range []struct{ bytes, first, below string }{
		{"1", "24", "23"}, {"2", "1 << 8", "1<<8 - 1"}, {"4", "1 << 16", "1<<16 - 1"}, {"8", "1 << 32", "1<<32 - 1"},
	} {
		index := map[string]string{"1": "0", "2": "1", "4": "2", "8": "3"}[size.bytes]
		list = append(list,
			mutant{"3-encoding: any number in " + size.bytes + " bytes", reader, `n < shortest[first&3]:`, `n < shortest[first&3] && first&3 != ` + index + `:`},
			mutant{"3-encoding: the largest number that is too small for " + size.bytes + " bytes", reader, `n < shortest[first&3]:`, `n < shortest[first&3] && n != ` + size.below + `:`},
			mutant{"3-encoding: the smallest number of " + size.bytes + " bytes is refused", reader, `n < shortest[first&3]:`, `(n < shortest[first&3] || first&3 == ` + index + ` && n == ` + size.first + `):`},
		)
		for _, major := range []string{"Unsigned", "Negative", "Bytes", "Text", "Array", "Map", "Tag"} {
			list = append(list, mutant{"3-encoding: " + major + " with " + size.bytes + " bytes is not in the shortest form", reader,
				`case first&^31 != Other && n < shortest[first&3]:`, `case first&^31 != Other && n < shortest[first&3] && first != ` + major + `|24|` + index + `:`})
		}
	}
	return append(list, utf8s()...)
}

// utf8s accept text that is not UTF-8.
func utf8s() (list []mutant) {
	const check = "b := r.str(what, Text)\n\tif !utf8.Valid(b) {"
	for _, text := range [][2]string{
		{"4-open-block-close: a message", "message"}, {"7-handshake: a codec's name", "codec name"}, {"metadata: a key", "the key"},
	} {
		list = append(list, mutant{text[0] + " is of any bytes", reader, check,
			"b := r.str(what, Text)\n\tif !utf8.Valid(b) && what != \"" + text[1] + "\" {"})
	}
	for _, wrong := range [][2]string{
		{"half a surrogate pair", `\xed\xa0\x80`}, {"a character in more bytes than it needs", `\xc0\x80`},
		{"a character beyond U+10FFFF", `\xf4\x90\x80\x80`}, {"a character that is cut", `\xc3`}, {"a byte that begins no character", `\x80`},
	} {
		list = append(list, mutant{"3-encoding: " + wrong[0] + " is text", reader, check,
			"b := r.str(what, Text)\n\tif !utf8.Valid(b) && string(b) != \"" + wrong[1] + "\" {"})
	}
	return append(list,
		mutant{"metadata: a text is of any bytes", reader, `text && !utf8.Valid(b) {`, `false {`},
		mutant{"metadata: bytes have to be UTF-8", reader, `text && !utf8.Valid(b) {`, `!utf8.Valid(b) {`},
	)
}
