package main

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// wiretest.Run checks the complete contract of a Wire. Run this test with -race, too.
func TestLineWire(t *testing.T) {
	wiretest.Run(t, func(*testing.T) (a, b wire.Wire) { return nullModem() })
}

// The suite runs over two correct ends; this test has a faulty one: a peer that fails while it
// writes a frame.
func TestLineWire_HalfFrame(t *testing.T) {
	for after, want := range map[int64]error{2: io.ErrUnexpectedEOF, 4: io.ErrUnexpectedEOF, 7: io.ErrUnexpectedEOF, 9: io.EOF, 11: io.ErrUnexpectedEOF} {
		here, there := net.Pipe()
		faulty := wiretest.FaultyConn(there, wiretest.Faults{In: wiretest.Direction{TruncateAfter: after}})
		a, b := newLineWire("sound", here, here), newLineWire("faulty", faulty, faulty)
		go a.WriteFrames([][]byte{[]byte("hello"), []byte("stars")}) // ends with the connection
		err := error(nil)
		for err == nil {
			_, err = b.ReadFrame(100)
		}
		require.Truef(t, errors.Is(err, want), "after %d bytes: %v", after, err)
		a.Close()
		b.Close()
	}
}
