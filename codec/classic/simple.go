package classic

// simpleForm is the form of the SimpleCodec: everything has a fixed number of bytes, big endian,
// and a length has two.
type simpleForm struct{}

func (simpleForm) appendInteger(dst []byte, n int64, width int) []byte {
	return appendBigEndian(dst, uint64(n), width)
}

func (simpleForm) integer(data []byte, width int) (n int64, size int, err error) {
	if len(data) < width {
		return 0, 0, ErrIncomplete
	}
	return signed(bigEndian(data[:width]), width), width, nil
}

func (simpleForm) appendFloat(dst []byte, bits uint64, width int) []byte {
	return appendBigEndian(dst, bits, width)
}

func (simpleForm) float(data []byte, width int) (bits uint64, size int, err error) {
	if len(data) < width {
		return 0, 0, ErrIncomplete
	}
	return bigEndian(data[:width]), width, nil
}

func (simpleForm) appendLength(dst []byte, n int) []byte { return append(dst, byte(n>>8), byte(n)) }

func (simpleForm) length(data []byte) (n, size int, err error) {
	if len(data) < 2 {
		return 0, 0, ErrIncomplete
	}
	return int(data[0])<<8 | int(data[1]), 2, nil
}

func (simpleForm) appendUUID(dst []byte, u UUID) []byte { return append(dst, u[:]...) }

func (simpleForm) uuid(data []byte) (u UUID, size int, err error) {
	if len(data) < len(u) {
		return u, 0, ErrIncomplete
	}
	return UUID(data[:len(u)]), len(u), nil
}
