package codec

// Values encodes the values that calls carry: parameters, elements of streams, results. Both sides
// of a session agree on one by its name. All methods are safe for use by several goroutines at the
// same time, and none blocks.
type Values interface {
	// Name is the name of the codec in the handshake: 1 to 32 bytes of UTF-8.
	Name() string

	// Append appends the encoding of v to dst and returns the longer slice; after an error, dst as
	// it was. It keeps no part of v. It refuses a value that Decode would not restore unchanged,
	// and names the place. The error is a *TypeError if the codec has no encoding for values of v's
	// type, and a *ValueError for everything else.
	Append(dst []byte, v any) ([]byte, error)

	// Decode decodes data, all of it, and stores the value in the variable that v points to. It
	// keeps no part of data, and returns an error for data of any content rather than panic. The
	// error is a *TypeError if data holds a value of another type than v points to (the variable
	// may be changed in part then), and a *ValueError for everything else. The peer receives the
	// Text of these two, which is in the terms of the codec, and no other error text.
	Decode(data []byte, v any) error
}
