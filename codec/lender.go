package codec

// Lender is implemented by [Values] for which some values are their own encoding, so that large
// ones need not be copied.
type Lender interface {
	// Bytes returns the encoding of what v points to, if that is in memory already. The caller only
	// reads it.
	Bytes(v any) (encoding []byte, ok bool)

	// Keep is Decode, of data that nobody else will use: what v points to may keep it.
	Keep(data []byte, v any) error
}
