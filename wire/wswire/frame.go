//go:build !js

package wswire

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"math"
	"sync"
)

// The library writes each message to the connection separately: with a system call per frame, small
// frames would be many times slower than over TCP. So data frames are written here, many at once;
// reading, control frames and the rest are left to the library.

// opcode is the type of a WebSocket frame: RFC 6455, section 5.2.
type opcode byte

const (
	opBinary opcode = 0x2
	opClose  opcode = 0x8
)

// chunk is how many bytes are read or written at once; they stay in the processor's cache.
const chunk = 32 << 10

// chunks holds unused buffers of chunk bytes.
var chunks = sync.Pool{New: func() any { return new([chunk]byte) }}

// maxHeader is the largest number of bytes in front of the payload of a frame.
const maxHeader = 2 + 8 + 4

// appendHeader appends the header of a whole message. A client has to mask its payload with the
// key.
func appendHeader(b []byte, op opcode, size int, client bool) (_ []byte, key uint32) {
	b = append(b, 0x80|byte(op)) // 0x80: the last frame of the message
	at := len(b)
	switch {
	case size < 126:
		b = append(b, byte(size))
	case size <= math.MaxUint16:
		b = binary.BigEndian.AppendUint16(append(b, 126), uint16(size))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 127), uint64(size))
	}
	if client {
		b[at] |= 0x80
		b = append(b, 0, 0, 0, 0)
		rand.Read(b[len(b)-4:]) // never fails
		key = binary.LittleEndian.Uint32(b[len(b)-4:])
	}
	return b, key
}

// mask masks b. A payload may be masked in pieces, all but the last of which have a multiple of 4
// bytes.
func mask(b []byte, key uint32) {
	for k := uint64(key)<<32 | uint64(key); len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^k)
	}
	for i := range b {
		b[i] ^= byte(key >> (i % 4 * 8))
	}
}

// encoder writes messages as frames, small ones together.
type encoder struct {
	w      io.Writer
	client bool
	out    *[chunk]byte // lent to the encoder; unwritten bytes are out[:n]
	n      int
}

// message adds a message. It keeps no part of it.
func (e *encoder) message(p []byte) error {
	if chunk-e.n < maxHeader {
		if err := e.flush(); err != nil {
			return err
		}
	}
	head, key := appendHeader(e.out[:e.n], opBinary, len(p), e.client)
	e.n = len(head)
	if !e.client && len(p) > chunk-e.n {
		if err := e.flush(); err != nil {
			return err
		}
		_, err := e.w.Write(p) // lent: no masking needed
		return err
	}
	for len(p) > 0 {
		if chunk-e.n < 8 {
			if err := e.flush(); err != nil {
				return err
			}
		}
		size := len(p)
		if room := chunk - e.n; size > room {
			size = room &^ 7
		}
		copy(e.out[e.n:], p[:size])
		mask(e.out[e.n:e.n+size], key)
		e.n, p = e.n+size, p[size:]
	}
	return nil
}

// flush writes the buffered bytes.
func (e *encoder) flush() error {
	if e.n == 0 {
		return nil
	}
	_, err := e.w.Write(e.out[:e.n])
	e.n = 0
	return err
}
