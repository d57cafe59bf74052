package codec

// Values encodes the values that calls carry: parameters, elements of streams, results. Both sides
// of a session agree on one by its name. All methods are safe for use by several goroutines at the
// same time, and none blocks.
type Values interface {
	// Name is how the handshake names the codec: 1 to 32 bytes of UTF-8.
	Name() string

	// Append appends the encoding of v to dst and returns the longer slice; after an error, dst as
	// it was. It keeps no part of v. It refuses what Decode would not make the same value of, and
	// names the place. The error is a *TypeError if the codec has no encoding for
	// values of v's type, and a *ValueError for everything else.
	Append(dst []byte, v any) ([]byte, error)

	// Decode stores in what v points to the value that data holds, the whole of it. It keeps no
	// part of data, and returns an error for data of any content rather than panic. The error is a
	// *TypeError if data holds a value that does not fit what v points to, which may be changed in
	// part then, and a *ValueError for everything else. The peer is told the Text of these two,
	// which is in the terms of the codec, and of other errors nothing.
	Decode(data []byte, v any) error
}
