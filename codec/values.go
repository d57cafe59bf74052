package codec

// Values encodes the values that calls carry: parameters, elements of streams, results. Both sides of a session agree on
// one by its name. All methods are safe for use by several goroutines at the same time, and none blocks.
type Values interface {
	// Name is how the handshake names the codec: 1 to 32 bytes of UTF-8.
	Name() string

	// Append appends the encoding of v to dst and returns the longer slice; after an error, dst as it was. It keeps no
	// part of v. The error is a *TypeError if the codec has no encoding for values of v's type.
	Append(dst []byte, v any) ([]byte, error)

	// Decode stores in what v points to the value that data holds, the whole of it. It keeps no part of data, and returns
	// an error for data of any content rather than panic. The error is a *TypeError if data holds a value that does not
	// fit what v points to, which may be changed in part then.
	Decode(data []byte, v any) error
}

// TypeError says that a value does not fit: Append has no encoding for it, or Decode found a value of another type in
// the bytes than it should store.
type TypeError struct {
	Want string // Decode: the Go type that should be stored. Append: what the codec can encode
	Got  string // Decode: what the bytes hold, "CBOR array" or "JSON string". Append: the value's Go type
	Err  error  // what the codec behind it said, or nil
}

// Error says what was wanted and what was there.
func (e *TypeError) Error() string {
	s := "asterisque: want " + e.Want + ", got " + e.Got
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *TypeError) Unwrap() error {
	return e.Err
}
