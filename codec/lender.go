package codec

// Lender is implemented by [Values] if some values are their own encoding, so that large ones need
// not be copied.
type Lender interface {
	// Bytes returns the encoding of the value that v points to, if that is in memory already. The
	// caller only reads it.
	Bytes(v any) (encoding []byte, ok bool)

	// Keep is Decode of data that has no other user: the value that v points to may keep it.
	Keep(data []byte, v any) error
}
