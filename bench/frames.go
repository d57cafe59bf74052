package main

import (
	"bufio"
	"encoding/binary"
	"io"
)

// appendFrame appends b behind its length as 4 bytes, big endian, for implementations with bytes
// and no messages.
func appendFrame(dst, b []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(b))), b...)
}

// readFrame reads one frame into buf, which it grows as needed, and returns it. The length stays
// before it.
func readFrame(r *bufio.Reader, buf []byte) ([]byte, error) {
	head, err := r.Peek(4)
	if err != nil {
		return buf, err
	}
	n := 4 + int(binary.BigEndian.Uint32(head))
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	_, err = io.ReadFull(r, buf[:n])
	return buf[:n], err
}

// drain reads r to its end, in the cheapest way for r, and returns the number of bytes.
func drain(r io.Reader) (n int64, err error) {
	if w, ok := r.(io.WriterTo); ok {
		return w.WriteTo(nowhere{})
	}
	buf := make([]byte, bulkWrite)
	for {
		k, err := r.Read(buf)
		n += int64(k)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// nowhere takes everything.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
