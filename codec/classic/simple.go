package classic

// simple is the form of the SimpleCodec: everything has a fixed number of bytes, big endian, and a
// length has two.
type simple struct{}

func (simple) appendInteger(dst []byte, n int64, width int) []byte {
	return appendBigEndian(dst, uint64(n), width)
}

func (simple) integer(data []byte, width int) (n int64, size int, err error) {
	if len(data) < width {
		return 0, 0, ErrIncomplete
	}
	return signed(bigEndian(data[:width]), width), width, nil
}

func (simple) appendFloat(dst []byte, bits uint64, width int) []byte {
	return appendBigEndian(dst, bits, width)
}

func (simple) float(data []byte, width int) (bits uint64, size int, err error) {
	if len(data) < width {
		return 0, 0, ErrIncomplete
	}
	return bigEndian(data[:width]), width, nil
}

func (simple) appendLength(dst []byte, n int) []byte { return append(dst, byte(n>>8), byte(n)) }

func (simple) length(data []byte) (n, size int, err error) {
	if len(data) < 2 {
		return 0, 0, ErrIncomplete
	}
	return int(data[0])<<8 | int(data[1]), 2, nil
}

func (simple) appendUUID(dst []byte, u UUID) []byte { return append(dst, u[:]...) }

func (simple) uuid(data []byte) (u UUID, size int, err error) {
	if len(data) < len(u) {
		return u, 0, ErrIncomplete
	}
	return UUID(data[:len(u)]), len(u), nil
}
