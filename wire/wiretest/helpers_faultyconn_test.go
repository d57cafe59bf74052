package wiretest_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque/wire/wiretest"
	"github.com/stretchr/testify/require"
)

// duplex is a stream of bytes without further methods.
type duplex struct {
	*io.PipeReader
	*io.PipeWriter
}

func (d duplex) Close() error { return errors.Join(d.PipeReader.Close(), d.PipeWriter.Close()) }

func (d duplex) CloseWithError(error) error { panic("not used") }

// bed is the fixture of a test of a faulty connection: f is the faulty end, peer the other one.
type bed struct {
	*testing.T
	f     *wiretest.Conn
	peer  net.Conn
	begin time.Time
}

// inBubble runs test in a synctest bubble over an unbuffered connection: a write waits for its
// read.
func inBubble(t *testing.T, faults wiretest.Faults, test func(b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, peer := net.Pipe()
		b := &bed{t, wiretest.FaultyConn(c, faults), peer, time.Now()}
		defer b.peer.Close()
		defer b.f.Close()
		test(b)
	})
}

// both returns Faults with d in both directions.
func both(d wiretest.Direction) wiretest.Faults { return wiretest.Faults{Seed: 1, Out: d, In: d} }

// transfer is a goroutine that writes, or reads to the end. It ends with the connection.
type transfer struct {
	mu sync.Mutex
	so outcome // guarded by mu
}

// outcome is the result of a transfer.
type outcome struct {
	data []byte // the bytes read
	n    int    // how many bytes were written
	err  error
	took time.Duration // since the bed was made
	done bool
}

// note updates the outcome.
func (b *bed) note(t *transfer, change func(o *outcome)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.so)
	t.so.took = time.Since(b.begin)
}

// send starts to write data to w in writes of this size.
func (b *bed) send(w io.Writer, data []byte, size int) *transfer {
	t := new(transfer)
	go func() {
		for part := range slices.Chunk(data, size) {
			n, err := w.Write(part)
			b.note(t, func(o *outcome) { o.n, o.err = o.n+n, err })
			if err != nil {
				break
			}
		}
		b.note(t, func(o *outcome) { o.done = true })
	}()
	return t
}

// collect starts to read from c to the end.
func (b *bed) collect(c io.Reader) *transfer {
	t := new(transfer)
	go func() {
		p := make([]byte, 4096)
		for {
			n, err := c.Read(p)
			b.note(t, func(o *outcome) { o.data, o.err, o.done = append(o.data, p[:n]...), err, err != nil })
			if err != nil {
				return
			}
		}
	}()
	return t
}

// now returns the outcome once all goroutines are blocked.
func (t *transfer) now() outcome {
	synctest.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.so
}

// data returns n bytes.
func data(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// ways runs test for each direction: w writes, r reads, and faulty is the direction of the Faults
// between them.
func ways(t *testing.T, d wiretest.Direction, test func(b *bed, w, r net.Conn)) {
	t.Run("out", func(t *testing.T) {
		inBubble(t, wiretest.Faults{Seed: 1, Out: d}, func(b *bed) { test(b, b.f, b.peer) })
	})
	t.Run("in", func(t *testing.T) {
		inBubble(t, wiretest.Faults{Seed: 1, In: d}, func(b *bed) { test(b, b.peer, b.f) })
	})
}

// read reads n bytes.
func read(t *bed, r io.Reader, n int) []byte {
	p := make([]byte, n)
	_, err := io.ReadFull(r, p)
	require.NoError(t, err)
	return p
}

// tcpPair returns both ends of a TCP connection, which close with the test.
func tcpPair(t *testing.T) (p, q net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	p, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	q, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		p.Close()
		q.Close()
	})
	return p, q
}
