package wire_test

import (
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

var benchSizes = []struct {
	name string
	size int
}{{"64B", 64}, {"4KiB", 4 << 10}, {"64KiB", 64 << 10}}

// BenchmarkTCP sends frames in batches of up to 64 KiB over loopback, with one goroutine for each
// end. One operation is one frame, sent and received.
func BenchmarkTCP(b *testing.B) {
	benchBulk(b, func(b *testing.B) (w, r wire.Wire) {
		p, q := tcpPair(b)
		return wire.FromConn(p), wire.FromConn(q)
	})
}

func BenchmarkTLS(b *testing.B) {
	server, client := tlsOptions(b)
	benchBulk(b, func(b *testing.B) (w, r wire.Wire) { return connect(b, listen(b, "tls://127.0.0.1:0", server), client) })
}

func BenchmarkPipe(b *testing.B) {
	benchBulk(b, func(*testing.B) (w, r wire.Wire) { return wire.Pipe() })
}

// benchBulk writes batches of about 64 KiB, or one frame if a frame is larger, and reads the
// frames.
func benchBulk(b *testing.B, pair func(b *testing.B) (w, r wire.Wire)) {
	for _, s := range benchSizes {
		b.Run(s.name, func(b *testing.B) {
			from, r := pair(b)
			w := from.(wire.BatchWriter)
			frames := max(1, 64<<10/(s.size+4))
			batch := manyFrames(frames, s.size)
			written := make(chan error, 1)
			b.SetBytes(int64(s.size))
			b.ReportAllocs()
			stop := make(chan struct{})
			go func() { // ends after stop, at the latest when its peer is closed
				for {
					if err := w.WriteBatch(batch); err != nil {
						written <- err
						return
					}
					select {
					case <-stop:
						written <- nil
						return
					default:
					}
				}
			}()
			for b.Loop() {
				if _, err := r.ReadFrame(s.size); err != nil {
					b.Fatal(err)
				}
			}
			close(stop)
			r.Close()
			<-written
			from.Close()
		})
	}
}

// BenchmarkBareTCP is BenchmarkTCP without frames: it writes and reads the bytes of a batch
// unchanged.
func BenchmarkBareTCP(b *testing.B) {
	for _, s := range benchSizes {
		b.Run(s.name, func(b *testing.B) {
			p, q := tcpPair(b)
			batch := manyFrames(max(1, 64<<10/(s.size+4)), s.size)
			ended := make(chan struct{})
			go func() { // ends when its peer is closed
				defer close(ended)
				for {
					if _, err := p.Write(batch); err != nil {
						return
					}
				}
			}()
			buf := make([]byte, 32<<10)
			b.SetBytes(int64(s.size))
			b.ReportAllocs()
			have := 0
			for b.Loop() {
				for have < s.size+4 {
					n, err := q.Read(buf)
					if err != nil {
						b.Fatal(err)
					}
					have += n
				}
				have -= s.size + 4
			}
			q.Close()
			<-ended
		})
	}
}

// BenchmarkPingPong sends one frame in each direction: on a wire with TryWriteBatch, on a wire with
// WriteFrames, and on a bare connection.
func BenchmarkPingPong(b *testing.B) {
	for _, s := range benchSizes {
		frame := manyFrames(1, s.size)
		pingPong := func(name string, end func(b *testing.B, c io.ReadWriteCloser) (send, receive func() error)) {
			b.Run(fmt.Sprintf("%s/%s", name, s.name), func(b *testing.B) {
				p, q := tcpPair(b)
				send, receive := end(b, p)
				sendBack, receiveThere := end(b, q)
				ended := make(chan struct{})
				go func() { // ends when its conn is closed
					defer close(ended)
					for receiveThere() == nil && sendBack() == nil {
					}
				}()
				b.SetBytes(int64(2 * s.size))
				b.ReportAllocs()
				for b.Loop() {
					if send() != nil || receive() != nil {
						b.Fatal("the connection failed")
					}
				}
				p.Close()
				q.Close()
				<-ended
			})
		}
		pingPong("TryWriteBatch", func(b *testing.B, c io.ReadWriteCloser) (send, receive func() error) {
			w, ok := wire.FromConn(c).(wire.TryWriter)
			if !ok {
				b.Skip("sockets have no TryWriteBatch here")
			}
			send = func() error {
				n, err := w.TryWriteBatch(frame)
				if err == nil && n < len(frame) {
					err = w.WriteBatch(frame[n:])
				}
				return err
			}
			return send, func() error { _, err := w.(wire.Wire).ReadFrame(s.size); return err }
		})
		pingPong("WriteFrames", func(b *testing.B, c io.ReadWriteCloser) (send, receive func() error) {
			w, frames := wire.FromConn(c), [][]byte{frame[4:]}
			return func() error { return w.WriteFrames(frames) }, func() error { _, err := w.ReadFrame(s.size); return err }
		})
		pingPong("bare", func(b *testing.B, c io.ReadWriteCloser) (send, receive func() error) {
			buf := make([]byte, len(frame))
			return func() error { _, err := c.Write(frame); return err }, func() error { _, err := io.ReadFull(c, buf); return err }
		})
	}
}

// TestFrame_Allocs runs a ping-pong, as the benchmark does, without an allocation.
func TestFrame_Allocs(t *testing.T) {
	for _, s := range benchSizes {
		t.Run(s.name, func(t *testing.T) {
			p, q := tcpPair(t)
			here, there := wire.FromConn(p), wire.FromConn(q)
			batch, frames := manyFrames(1, s.size), [][]byte{make([]byte, s.size)}
			round := func() {
				require.NoError(t, here.(wire.BatchWriter).WriteBatch(batch))
				require.NoError(t, there.WriteFrames(frames))
				for _, w := range []wire.Wire{here, there} {
					if _, err := w.ReadFrame(s.size); err != nil {
						t.Fatal(err)
					}
				}
			}
			if n := testing.AllocsPerRun(200, round); !raceEnabled {
				require.Less(t, n, 1.0, "allocations for two frames, written and read")
			}
		})
	}
}

func manyFrames(n, size int) []byte {
	var b []byte
	for range n {
		b = append(b, stream(string(make([]byte, size)))...)
	}
	return b
}
