package vectors

const (
	plainFile   = "codec/cborplain.go"
	roundedFile = "codec/jsonrounded.go"
)

// integers rounds integers, or reads them as other integers.
func integers() []mutant {
	return []mutant{
		{"7-handshake: an integer of 64 bits wraps around", plainFile, `if !ok || u > math.MaxInt64 || major > cborhead.Negative {`, `if !ok || major > cborhead.Negative {`},
		{"7-handshake: the largest integer of 63 bits is rounded", plainFile, `return int64(u), true`, `return int64(float64(u)), true`},
		{"7-handshake: a negative integer is one off", plainFile, `return ^int64(u), true`, `return -int64(u), true`},
		{"7-handshake: an unsigned integer is rounded", plainFile, "major == cborhead.Unsigned; ok {\n\t\t\t*v = n", "major == cborhead.Unsigned; ok {\n\t\t\t*v = uint64(float64(n))"},
		{"7-handshake: a negative integer is read as unsigned", plainFile, "v != nil && major == cborhead.Unsigned; ok {", "v != nil && major <= cborhead.Negative; ok {"},
		{"7-handshake: an integer is written rounded", plainFile, "case int64:\n\t\treturn cborhead.AppendInt(dst, v), true", "case int64:\n\t\treturn cborhead.AppendInt(dst, int64(float64(v))), true"},
		{"7-handshake: an unsigned integer is written rounded", plainFile, "case uint64:\n\t\treturn cborhead.AppendUint(dst, v), true", "case uint64:\n\t\treturn cborhead.AppendUint(dst, uint64(float64(v))), true"},
		{"7-handshake: an unsigned integer is written as a signed one", plainFile, "case uint64:\n\t\treturn cborhead.AppendUint(dst, v), true", "case uint64:\n\t\treturn cborhead.AppendInt(dst, int64(v)), true"},
		{"7-handshake: an integer in json becomes floating point", roundedFile, `if to-from >= fewestRounded {`, `if false {`},
		{"7-handshake: an integer in json is compared as it is rounded", roundedFile, `strconv.FormatFloat(f, 'f', 0, 64) == string(item) {`, `f != 0 {`},
	}
}
