package wire_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestWires(t *testing.T) {
	server, client := tlsOptions(t)
	dial := func(url string, server, client wire.Options) func(t *testing.T) (a, b wire.Wire) {
		return func(t *testing.T) (a, b wire.Wire) { return connect(t, listen(t, url, server), client) }
	}
	swapped := func(pair func(t *testing.T) (a, b wire.Wire)) func(t *testing.T) (a, b wire.Wire) {
		return func(t *testing.T) (a, b wire.Wire) {
			b, a = pair(t)
			return a, b
		}
	}
	tlsPair := dial("tls://127.0.0.1:0", server, client)
	tests := map[string]func(t *testing.T) (a, b wire.Wire){
		"tcp":                   dial("tcp://127.0.0.1:0", wire.Options{}, wire.Options{}),
		"tls from the dialler":  tlsPair,
		"tls from the acceptor": swapped(tlsPair),
		"unix": func(t *testing.T) (a, b wire.Wire) {
			return dial("unix://"+strings.ReplaceAll(socket(t), " ", "%20"), wire.Options{}, wire.Options{})(t)
		},
		"mem": dial("mem://conformance", wire.Options{}, wire.Options{}),
		"net.Conn": func(*testing.T) (a, b wire.Wire) {
			p, q := net.Pipe()
			return wire.FromConn(p), wire.FromConn(q)
		},
		"io.ReadWriteCloser": func(*testing.T) (a, b wire.Wire) {
			there, in := io.Pipe()
			back, out := io.Pipe()
			return wire.FromConn(duplex{back, in}), wire.FromConn(duplex{there, out})
		},
	}
	for name, pair := range tests {
		t.Run(name, func(t *testing.T) { wiretest.Run(t, pair) })
	}
}

// duplex is a stream that is not a net.Conn: it has no address and cannot close one direction.
type duplex struct {
	*io.PipeReader
	*io.PipeWriter
}

func (d duplex) Close() error { return errors.Join(d.PipeReader.Close(), d.PipeWriter.Close()) }

func (d duplex) CloseWithError(error) error { panic("not used") }
