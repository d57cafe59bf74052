package wire_test

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// writeFunc is a function that implements io.Writer.
type writeFunc func(p []byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

// receivers returns wires of all kinds, each with a Writer of the raw bytes that the wire receives.
func receivers(t *testing.T) map[string]func() (wire.Wire, io.Writer) {
	server, client := tlsOptions(t)
	return map[string]func() (wire.Wire, io.Writer){
		"tcp": func() (wire.Wire, io.Writer) {
			p, q := tcpPair(t)
			return wire.FromConn(p), q
		},
		"net.Conn": func() (wire.Wire, io.Writer) {
			p, q := net.Pipe()
			return wire.FromConn(p), q
		},
		"mem": func() (wire.Wire, io.Writer) {
			a, b := wire.Pipe()
			return a, writeFunc(b.(wire.TryWriter).TryWriteBatch)
		},
		"tls": func() (wire.Wire, io.Writer) {
			l := listen(t, "tls://127.0.0.1:0", server)
			cfg := client.TLS.Clone()
			cfg.NextProtos = []string{"asterisque/1"}
			accepted := make(chan wire.Wire, 1)
			go func() { // ends with the handshake
				w, err := l.Accept()
				if err == nil {
					_, err = w.ReadFrame(0)
				}
				if err != nil {
					t.Error(err)
				}
				accepted <- w
			}()
			c, err := tls.Dial("tcp", strings.TrimPrefix(l.URL(), "tls://"), cfg)
			require.NoError(t, err)
			t.Cleanup(func() { c.Close() })
			_, err = c.Write(stream(""))
			require.NoError(t, err)
			return <-accepted, c
		},
	}
}

// Receiving is the memory of half a frame.
func TestReceiving_HalfFrame(t *testing.T) {
	const size, chunk = 1 << 20, 32 << 10
	for name, pair := range receivers(t) {
		t.Run(name, func(t *testing.T) {
			w, to := pair()
			defer w.Close()
			r := w.(wire.Meter)
			frames := make(chan int)
			go func() { // ends with w
				defer close(frames)
				for {
					f, err := w.ReadFrame(size)
					if err != nil {
						return
					}
					frames <- len(f)
				}
			}()
			data := stream(strings.Repeat("x", size))
			send := func(data []byte) {
				for len(data) > 0 {
					n, err := to.Write(data)
					require.NoError(t, err)
					data = data[n:]
				}
			}
			holds := func(least, most int) {
				t.Helper()
				require.Eventually(t, func() bool {
					n := r.Receiving()
					return n >= least && n <= most
				}, 2*time.Minute, time.Millisecond)
			}
			for range 2 {
				require.Zero(t, r.Receiving())
				sent := 0
				for _, half := range []int{5, 2000, chunk, 3 * chunk, size / 2} {
					send(data[sent:half])
					sent = half
					holds(half, 2*half+chunk+1<<10)
				}
				send(data[sent:])
				require.Equal(t, size, <-frames)
			}
			require.Zero(t, r.Receiving())
			send(data[:5])
			holds(5, chunk+1<<10)
			require.NoError(t, w.Close())
			<-frames
			require.Zero(t, r.Receiving(), "a Wire that is closed holds nothing")
		})
	}
}
