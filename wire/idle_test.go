package wire_test

import (
	"bytes"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
)

// An idle wire holds little memory, whatever the size of earlier frames.
func TestIdle_LittleMemory(t *testing.T) {
	const idle = 1<<10 + 128
	fill := func(n int) string { return strings.Repeat("x", n-4) } // n bytes with its length
	for name, frames := range map[string][]string{
		"nothing":                             {},
		"a frame that fills its buffer":       {fill(2 << 20)},
		"one that fills the largest buffer":   {fill(4 << 20)},
		"one that fills what is read at once": {fill(32 << 10)},
		"one that fills the buffer of a wait": {fill(idle)},
		"many small ones that fill it":        strings.Split(strings.Repeat(fill(idle/9)+" ", 9*50), " "),
		"a large one and a small one":         {fill(2 << 20), fill(idle)},
	} {
		t.Run(name, func(t *testing.T) {
			data := bytes.NewReader(stream(frames...))
			waited := 0
			w := wire.FromConn(script{Reader: readFunc(func(p []byte) (int, error) {
				if data.Len() == 0 {
					waited = len(p)
				}
				return data.Read(p)
			})})
			for range frames {
				_, err := w.ReadFrame(8 << 20)
				require.NoError(t, err)
			}
			_, err := w.ReadFrame(8 << 20)
			require.Equal(t, io.EOF, err)
			require.Equal(t, idle, waited)
		})
	}
}

// Idle wires hold little memory after large frames.
func TestIdle_AfterLargeFrames(t *testing.T) {
	server, client := tlsOptions(t)
	for _, c := range []struct {
		name string
		most int // bytes for a pair of wires
		pair func(t *testing.T) (a, b wire.Wire)
	}{
		{"mem", 8 << 10, func(*testing.T) (a, b wire.Wire) { return wire.Pipe() }},
		{"net.Pipe", 8 << 10, func(*testing.T) (a, b wire.Wire) {
			p, q := net.Pipe()
			return wire.FromConn(p), wire.FromConn(q)
		}},
		{"tls", 128 << 10, func(t *testing.T) (a, b wire.Wire) {
			return connect(t, listen(t, "tls://127.0.0.1:0", server), client)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 10
			frame := make([]byte, 2<<20-4) // with its length it fills a buffer
			before := weightest.Heap()
			var ends []wire.Wire
			reads := make(chan error, 2*n)
			for range n {
				a, b := c.pair(t)
				ends = append(ends, a, b)
				go a.WriteFrames([][]byte{frame}) // these end with the read, and with the wires
				_, err := b.ReadFrame(len(frame))
				require.NoError(t, err)
				for _, w := range []wire.Wire{a, b} {
					go func() {
						_, err := w.ReadFrame(len(frame))
						reads <- err
					}()
				}
			}
			held := weightest.Heap() - before
			for range 100 { // the goroutines may still be on their way to their wait
				if runtime.Gosched(); held < n*c.most {
					break
				}
				held = weightest.Heap() - before
			}
			runtime.KeepAlive(frame)
			t.Logf("%d bytes for a pair of idle wires", held/n)
			require.Less(t, held/n, c.most)
			for _, w := range ends {
				w.Close()
			}
			for range ends {
				<-reads
			}
		})
	}
}
