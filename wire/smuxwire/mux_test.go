package smuxwire_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
)

const window = 256 << 10

// A slow reader blocks only its own writer.
func TestMux_SlowReader(t *testing.T) {
	client, server := muxes(t, smuxwire.WithWires(4))
	var slow []wire.Wire
	stuck := make(chan error)
	for range 3 { // all but one of those that there may be
		a, _ := open(t, client, server)
		slow = append(slow, a)
		// The goroutine ends when a is closed.
		go func() { stuck <- a.WriteFrames([][]byte{make([]byte, 4*window)}) }()
	}
	a, b := open(t, client, server)
	for range 200 {
		pingPong(t, a, b)
	}
	written := make(chan error, 1)
	// The goroutine ends when the frames have been read.
	go func() { written <- a.WriteFrames([][]byte{make([]byte, 16*window)}) }()
	frame, err := b.ReadFrame(16 * window)
	require.NoError(t, err)
	require.Len(t, frame, 16*window)
	require.NoError(t, <-written)
	for _, w := range slow {
		require.NoError(t, w.Close())
		require.ErrorIs(t, <-stuck, net.ErrClosed, "it was stuck until then")
	}
}

// TestMux_Version1 shows the reason for version 2: with version 1, one blocked reader blocks all
// streams.
func TestMux_Version1(t *testing.T) {
	client, server := muxes(t, smuxwire.WithVersion(1), smuxwire.WithWires(4))
	slow, slowEnd := open(t, client, server)
	a, b := open(t, client, server)
	pingPong(t, a, b)
	const all = 4*window + 64<<10 // what the connection buffers for all its streams
	require.NoError(t, slow.WriteFrames([][]byte{make([]byte, all)}))
	require.NoError(t, a.WriteFrames([][]byte{[]byte("hello")}))
	require.NoError(t, b.(deadliner).SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	_, err := b.ReadFrame(5)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it does not come, however long one waits")
	require.NoError(t, b.(deadliner).SetReadDeadline(time.Time{}))

	_, err = slowEnd.ReadFrame(all)
	require.NoError(t, err)
	frame, err := b.ReadFrame(5)
	require.NoError(t, err, "now that the other one has been read")
	require.Equal(t, "hello", string(frame))
}

// Either side opens wires.
func TestMux_EitherSideOpens(t *testing.T) {
	client, server := muxes(t)
	a, b := open(t, client, server)
	c, d := open(t, server, client)
	pingPong(t, a, b)
	pingPong(t, c, d)
}

// Data that arrives while a Wire is being opened is not lost.
func TestMux_DataWhileOpening(t *testing.T) {
	client, server := muxes(t)
	const wires = 2000
	go func() { // ends with the Mux
		for {
			w, err := server.Accept()
			if err != nil {
				return
			}
			w.WriteFrames([][]byte{[]byte("welcome")})
			w.Close()
		}
	}()
	for range wires {
		w, err := client.Open(t.Context())
		require.NoError(t, err)
		frame, err := w.ReadFrame(100)
		require.NoError(t, err)
		require.Equal(t, "welcome", string(frame))
		_, err = w.ReadFrame(100)
		require.Equal(t, io.EOF, err)
		require.NoError(t, w.Close())
	}
}

// Data sent before the end of the connection arrives.
func TestMux_SentBeforeEnd(t *testing.T) {
	for range 100 {
		client, server := muxes(t)
		a, b := open(t, client, server)
		require.NoError(t, a.WriteFrames([][]byte{make([]byte, 50_000), []byte("last")}))
		require.NoError(t, client.Close())
		frame, err := b.ReadFrame(50_000)
		require.NoError(t, err)
		require.Len(t, frame, 50_000)
		frame, err = b.ReadFrame(50_000)
		require.NoError(t, err)
		require.Equal(t, "last", string(frame))
		_, err = b.ReadFrame(50_000)
		require.Equal(t, io.EOF, err)
	}
}

// A cut connection is no graceful end of any Wire.
func TestMux_CutConnection(t *testing.T) {
	c, s := tcpPair(t)
	client, err := smuxwire.Client(c)
	require.NoError(t, err)
	defer client.Close()
	server, err := smuxwire.Server(s)
	require.NoError(t, err)
	defer server.Close()
	a, b := open(t, client, server)
	d, e := open(t, client, server)
	pingPong(t, a, b)
	pingPong(t, d, e)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	for _, w := range []wire.Wire{b, e} {
		for range 2 {
			_, err := w.ReadFrame(100)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.ErrorContains(t, err, "the connection below")
		}
	}
	<-server.Done()
	require.ErrorIs(t, server.Err(), io.ErrUnexpectedEOF)
	for err = nil; err == nil; { // the library may still accept some frames
		err = b.WriteFrames([][]byte{nil})
	}
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = server.Accept()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = server.Open(t.Context())
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// Close of a Mux closes its wires.
func TestMux_Close(t *testing.T) {
	client, server := muxes(t)
	a, b := open(t, client, server)
	waiting := make(chan error)
	go func() { // ends with the Mux
		_, err := a.ReadFrame(100)
		waiting <- err
	}()
	accepting := make(chan error)
	go func() { // ends with the Mux
		_, err := client.Accept()
		accepting <- err
	}()
	require.NoError(t, client.Err())
	require.NoError(t, client.Close())
	require.NoError(t, client.Close(), "repeated")
	require.ErrorIs(t, <-waiting, net.ErrClosed)
	require.ErrorIs(t, <-accepting, net.ErrClosed)
	require.ErrorIs(t, a.WriteFrames([][]byte{nil}), net.ErrClosed)
	_, err := client.Open(t.Context())
	require.ErrorIs(t, err, net.ErrClosed)
	_, err = b.ReadFrame(100)
	require.Equal(t, io.EOF, err, "for the peer it is a good end")
	<-server.Done()
}

// A Mux has at most the allowed number of wires.
func TestMux_WireLimit(t *testing.T) {
	c, s := tcpPair(t)
	client, err := smuxwire.Client(c, smuxwire.WithWires(3))
	require.NoError(t, err)
	defer client.Close()
	server, err := smuxwire.Server(s, smuxwire.WithWires(2))
	require.NoError(t, err)
	defer server.Close()
	a, b := open(t, client, server)
	d, e := open(t, client, server)

	refused, err := client.Open(t.Context())
	require.NoError(t, err, "this side has room")
	_, err = refused.ReadFrame(100)
	require.Equal(t, io.EOF, err, "the other one has none")
	_, err = client.Open(t.Context())
	require.ErrorIs(t, err, smuxwire.ErrFull)
	require.NoError(t, refused.Close())
	pingPong(t, a, b)
	pingPong(t, d, e)

	require.NoError(t, a.Close())
	require.NoError(t, b.Close())
	f, g := open(t, client, server)
	pingPong(t, f, g)
}

func TestOptions_Invalid(t *testing.T) {
	for want, opts := range map[string][]smuxwire.Option{
		"WithWires(0)":                  {smuxwire.WithWires(0)},
		"WithWires(-1)":                 {smuxwire.WithWires(-1)},
		"WithWindow(65536)":             {smuxwire.WithWindow(65536)},
		"lower WithWires or WithWindow": {smuxwire.WithWires(1 << 13)},
	} {
		for _, makes := range []func(io.ReadWriteCloser, ...smuxwire.Option) (*smuxwire.Mux, error){smuxwire.Client, smuxwire.Server} {
			c, _ := net.Pipe()
			_, err := makes(c, opts...)
			require.ErrorContains(t, err, want)
			_, err = c.Write(nil)
			require.ErrorIs(t, err, io.ErrClosedPipe, "the connection is closed")
		}
	}
	client, server := muxes(t, smuxwire.WithWires(1), smuxwire.WithWindow(4*window))
	a, b := open(t, client, server)
	pingPong(t, a, b)
}

// An accepted Wire needs no reference from the library.
func TestMux_GarbageCollected(t *testing.T) {
	client, server := muxes(t)
	a, b := open(t, client, server)
	for range 3 {
		runtime.GC() // the library closes accepted streams without references
	}
	pingPong(t, a, b)
}

// valve is a connection that can block its writes.
type valve struct {
	net.Conn
	mu   sync.Mutex // held while the valve is shut
	sent bytes.Buffer
	shut chan struct{} // receives when a write is held up
}

func (v *valve) Write(p []byte) (int, error) {
	if !v.mu.TryLock() {
		v.shut <- struct{}{}
		v.mu.Lock()
	}
	defer v.mu.Unlock()
	v.sent.Write(p)
	return len(p), nil
}

// A failed Write does not send the later content of its memory.
func TestWrite_FailedSendsNothing(t *testing.T) {
	p, q := net.Pipe()
	defer q.Close()
	v := &valve{Conn: p, shut: make(chan struct{}, 100)}
	m, err := smuxwire.Client(v, smuxwire.WithWires(200))
	require.NoError(t, err)
	defer m.Close()
	var wires []wire.Wire
	for range 102 {
		w, err := m.Open(t.Context())
		require.NoError(t, err)
		wires = append(wires, w)
	}
	secret := []byte(strings.Repeat("secret", 1000))
	v.mu.Lock()
	first := make(chan error)
	// The goroutine ends when the valve opens.
	go func() { first <- wires[0].WriteFrames([][]byte{[]byte("first")}) }()
	<-v.shut
	require.NoError(t, wires[1].(deadliner).SetWriteDeadline(time.Now().Add(10*time.Millisecond)))
	require.ErrorIs(t, wires[1].WriteFrames([][]byte{[]byte(strings.Repeat("public", 1000))}), os.ErrDeadlineExceeded)
	later := make(chan error)
	var started sync.WaitGroup
	for _, w := range wires[2:] { // one of these would have the memory of the failed one
		started.Add(1)
		go func() { // ends when the valve opens
			started.Done()
			later <- w.WriteFrames([][]byte{secret})
		}()
	}
	started.Wait()
	for range 1000 { // so that they come as far as they can; if they do not, the test is weaker
		runtime.Gosched()
	}
	v.mu.Unlock()
	require.NoError(t, <-first)
	for range wires[2:] {
		require.NoError(t, <-later)
	}
	require.NoError(t, m.Close())
	v.mu.Lock()
	defer v.mu.Unlock()
	require.LessOrEqual(t, bytes.Count(v.sent.Bytes(), []byte("secret")), 1000*len(wires[2:]), "none of them goes out on the Wire that had failed")
}

// Open and Close do not wait for a peer that does not read.
func TestMux_PeerNotReading(t *testing.T) {
	p, q := net.Pipe()
	defer q.Close()
	m, err := smuxwire.Client(p)
	require.NoError(t, err)
	defer m.Close()
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan error)
	go func() { // ends with ctx
		_, err := m.Open(ctx)
		opened <- err
	}()
	cancel()
	require.ErrorIs(t, <-opened, context.Canceled)

	v := &valve{Conn: q, shut: make(chan struct{}, 100)}
	n, err := smuxwire.Server(v)
	require.NoError(t, err)
	w, err := n.Open(t.Context())
	require.NoError(t, err)
	v.mu.Lock()
	before := time.Now()
	require.NoError(t, w.Close())
	require.NoError(t, n.Close())
	require.Less(t, time.Since(before), 29*time.Second, "the library would wait for 30 s")
	v.mu.Unlock()
}

// Wires that the peer has closed are still accepted.
func TestMux_AcceptLeftWires(t *testing.T) {
	client, server := muxes(t)
	const wires = 20
	for range wires {
		w, err := client.Open(t.Context())
		require.NoError(t, err)
		require.NoError(t, w.WriteFrames([][]byte{[]byte("hello")}))
	}
	require.NoError(t, client.Close())
	<-server.Done()
	for range wires {
		w, err := server.Accept()
		require.NoError(t, err)
		frame, err := w.ReadFrame(5)
		require.NoError(t, err)
		require.Equal(t, "hello", string(frame))
		_, err = w.ReadFrame(5)
		require.Equal(t, io.EOF, err)
		require.NoError(t, w.Close())
	}
}
