// Package classic implements the message format of the classic asterisque, protocol 0.1, with
// either of its codecs: the encoding of [Open], [Block], [Close] and [Control], the handshake
// [Sync], and the typed values that calls carry. Package wire/classicwire connects it to sessions;
// an application uses the two like this:
//
//	import _ "github.com/asterisque-go/asterisque/wire/classicwire" // adds classic://host:port
//
//	node := asterisque.NewNode(asterisque.WithCodecs(classic.MessagePack))
//	session, err := node.Dial(ctx, "classic://127.0.0.1:5330")
//
// # Codecs
//
// A program of the original has one of two codecs in its Options, and both ends need the same:
//
//	here           in the original
//	[MessagePack]  MessagePackCodec, the default
//	[Simple]       SimpleCodec
//
// Both write the same items in the same order; they differ in the encoding of numbers, texts and
// uuids. Simple gives every number a fixed size. MessagePack encodes each in the fewest bytes, and
// converts counts to signed numbers before: 40,000 elements are written as -25,536, and 40,000
// itself is refused. It does not use the arrays and maps of MessagePack. Texts and binaries are the
// raw bytes of msgpack 0.6; those of later versions are read as well, but never written. A number
// is read in any form that fits its type, a tag only as the one byte that the original writes.
//
// # Values
//
// A [Codec] maps Go types to the types of the format, and back:
//
//	Go                                       classic
//	nil, a nil pointer or interface          null; it is decoded as the zero value of any Go type
//	bool                                     bool
//	int8, int16, int32, int64                the same
//	int                                      int64
//	uint8, uint16, uint32                    int16, int32, int64: the next that holds all of them
//	uint, uint64                             int64, up to its largest
//	float32, float64                         the same
//	string                                   string, in UTF-8
//	[]byte, [n]byte                          binary
//	UUID and every other [16]byte            uuid
//	slices and arrays                        list; a nil slice is an empty one
//	maps                                     map, in the order of the encoded keys; a nil map is an empty one
//	struct{}                                 null, which the original sends for no result: void, and Unit of Scala
//	other structs                            struct with the exported fields in their order
//	Struct, Map                              struct and map of any types
//	pointers, interfaces                     the value that they hold
//
// Append rejects a value that would not arrive unchanged, and its error names the place: text that
// is not UTF-8, two NaN keys of a map with the same bits, and values nested more than [MaxDepth]
// deep. The default of Limits.Expansion allows lists of any 1,000 levels and recursive Go types
// some 50, since a typed value takes more memory for each level.
//
// Integers are decoded as any Go type that holds the number, and as a floating-point type if that
// is exact; float64 as float32 if that is exact. Nothing else is converted. An any receives nil,
// bool, int8 to int64, float32, float64, []byte, string, UUID, []any, Map or Struct.
//
// The schema of a struct is the tag of a blank field; a field is left out by the tag "-":
//
//	type Point struct {
//		_    struct{} `classic:"com.example.Point"`
//		X, Y int32
//		note string        // not exported: not sent
//		Memo string        `classic:"-"`
//	}
//
// A Go struct accepts a classic one with the same number of fields, and with its schema if it has
// one. So a struct{} accepts null and every struct without fields, such as the struct "void", with
// which a program of the original can also encode Unit ([Struct] sends that). A type that is not in
// the table, such as time.Time or a channel, is a *codec.TypeError.
//
// # Parameters
//
// A classic call has a list of parameters; a function here has one, P:
//
//	P                            parameters
//	struct{}                     none
//	a struct without a schema    its fields, one parameter each
//	Params                       its elements
//	anything else                one: a struct with a schema, a slice, a map, a string and so on
//
// So Func[struct{Name string; Age int32}, string] is String f(String, int). As any, a handler
// receives Params.
//
// # Concurrency
//
// Messages are plain values without a lock. A Codec is safe for use by several goroutines at the
// same time; a [Decoder] belongs to one.
//
// # Errors
//
// Malformed input is a [*FormatError], for which errors.Is(err, codec.ErrProtocol) holds; a message
// that is longer than allowed is a [*SizeError], for which errors.Is(err, codec.ErrTooLarge) holds.
// For any input, functions of this package neither panic nor allocate more than a fixed multiple of
// its length.
package classic
