package classic

// Detect returns the codec of a stream of messages, which its first three bytes identify. The error
// is ErrIncomplete if it needs more of them, and a *FormatError if data is not the start of a
// message.
func Detect(data []byte) (Codec, error) {
	if len(data) == 0 {
		return MessagePack, ErrIncomplete
	}
	switch data[0] {
	case controlTag: // the length of its data is third
		switch {
		case len(data) < 3:
			return MessagePack, ErrIncomplete
		case data[2] < packedRaw: // Simple writes this for less than 40 kB
			return Simple, nil
		}
	case openTag, closeTag, blockTag: // the pipe id is second
		switch {
		case len(data) < 2:
			return MessagePack, ErrIncomplete
		case data[1] == 0, data[1] == 0x80: // in MessagePack id 0, or no integer
			return Simple, nil
		}
	default:
		return MessagePack, malformed(0, "unexpected message tag %02x", data[0])
	}
	return MessagePack, nil
}
