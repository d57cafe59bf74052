package classic

// Codec is one of the two encodings of messages and values in the original. Both ends of a
// connection have to use the same one. Each is also a value codec for sessions, a codec.Values and
// a codec.Weigher; the package comment has its table of types.
type Codec uint8

// The codecs of the original. MessagePack is its default, and takes fewer bytes in most cases.
const (
	MessagePack Codec = iota // its MessagePackCodec
	Simple                   // its SimpleCodec
)

// Name implements codec.Values: "classic-messagepack" or "classic-simple".
func (c Codec) Name() string {
	if c == Simple {
		return "classic-simple"
	}
	return "classic-messagepack"
}

// String returns the name of the codec in the original.
func (c Codec) String() string {
	if c == Simple {
		return "SimpleCodec"
	}
	return "MessagePackCodec"
}

func (c Codec) form() form {
	if c == Simple {
		return simpleForm{}
	}
	return messagePackForm{}
}
