package smuxwire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
)

// tcpPair returns both ends of a TCP connection.
func tcpPair(t testing.TB) (dialled, accepted net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialled, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	accepted, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// muxes returns both ends of a connection.
func muxes(t testing.TB, opts ...smuxwire.Option) (client, server *smuxwire.Mux) {
	c, s := tcpPair(t)
	client, err := smuxwire.Client(c, opts...)
	require.NoError(t, err)
	server, err = smuxwire.Server(s, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// open opens a Wire from one Mux to the other.
func open(t testing.TB, from, to *smuxwire.Mux) (opened, accepted wire.Wire) {
	t.Helper()
	opened, err := from.Open(t.Context())
	require.NoError(t, err)
	accepted, err = to.Accept()
	require.NoError(t, err)
	return opened, accepted
}

// pingPong sends a frame there and back.
func pingPong(t testing.TB, a, b wire.Wire) {
	t.Helper()
	for _, ends := range [][2]wire.Wire{{a, b}, {b, a}} {
		require.NoError(t, ends[0].WriteFrames([][]byte{[]byte("hello")}))
		frame, err := ends[1].ReadFrame(5)
		require.NoError(t, err)
		require.Equal(t, "hello", string(frame))
	}
}

const window = 256 << 10

func TestASlowReaderStopsItsOwnWriterOnly(t *testing.T) {
	client, server := muxes(t, smuxwire.WithWires(4))
	var slow []wire.Wire
	stuck := make(chan error)
	for range 3 { // all but one of those that there may be
		a, _ := open(t, client, server)
		slow = append(slow, a)
		// ends when a is closed
		go func() { stuck <- a.WriteFrames([][]byte{make([]byte, 4*window)}) }()
	}
	a, b := open(t, client, server)
	for range 200 {
		pingPong(t, a, b)
	}
	written := make(chan error, 1)
	// ends when it has been read
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

// TestVersion1OfSmuxWouldLetOneReaderStopAll is why version 2 is used.
func TestVersion1OfSmuxWouldLetOneReaderStopAll(t *testing.T) {
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

func TestEitherSideOpensWires(t *testing.T) {
	client, server := muxes(t)
	a, b := open(t, client, server)
	c, d := open(t, server, client)
	pingPong(t, a, b)
	pingPong(t, c, d)
}

func TestNothingIsLostThatComesWhileAWireIsBeingOpened(t *testing.T) {
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

func TestWhatWasSentBeforeTheEndOfTheConnectionArrives(t *testing.T) {
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

func TestACutConnectionIsNoGoodEndOfAnyWire(t *testing.T) {
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
	require.ErrorIs(t, b.WriteFrames([][]byte{nil}), io.ErrUnexpectedEOF)
	_, err = server.Accept()
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = server.Open(t.Context())
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestCloseOfAMuxClosesItsWires(t *testing.T) {
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

func TestAMuxHasNoMoreWiresThanAllowed(t *testing.T) {
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

func TestOptionsThatDoNotFitAreNamed(t *testing.T) {
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

func TestAnAcceptedWireNeedsNoReferenceOfTheLibrary(t *testing.T) {
	client, server := muxes(t)
	a, b := open(t, client, server)
	for range 3 {
		runtime.GC() // the library closes accepted streams that nobody refers to
	}
	pingPong(t, a, b)
}

// valve is a connection that can be shut.
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

func TestAWriteThatFailedDoesNotSendWhatIsInItsMemoryLater(t *testing.T) {
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
	// ends when the valve opens
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

func TestOpenAndCloseDoNotWaitForAPeerThatDoesNotRead(t *testing.T) {
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
	require.Less(t, time.Since(before), 10*time.Second, "the library would wait for 30 s")
	v.mu.Unlock()
}

func TestAPeerOfAnotherVersionIsToldApartQuickly(t *testing.T) {
	one := smux.DefaultConfig() // version 1
	t.Run("that dials", func(t *testing.T) {
		l := listen(t, "smux://127.0.0.1:0", wire.Options{})
		c, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "smux://"))
		require.NoError(t, err)
		peer, err := smux.Client(c, one)
		require.NoError(t, err)
		defer peer.Close()
		st, opened := peer.OpenStream() // fails if the answer is quicker
		w, err := l.Accept()
		require.NoError(t, err)
		_, err = w.ReadFrame(100)
		require.ErrorContains(t, err, "the peer speaks version 1 of smux, and this side version 2")
		require.ErrorContains(t, err, "smux.Config.Version")
		require.Error(t, w.WriteFrames([][]byte{nil}))
		require.NotNil(t, w.RemoteAddr())
		require.NoError(t, w.Close())
		if opened == nil {
			_, opened = st.Read(make([]byte, 1))
		}
		require.Error(t, opened, "the peer need not wait either")
	})
	t.Run("that listens, and gives up", func(t *testing.T) {
		dialTo(t, func(c net.Conn) {
			peer, err := smux.Server(c, one)
			if err == nil {
				peer.AcceptStream() // fails
				peer.Close()
			}
		}, "without a word; does it speak version 2 of smux?")
	})
	t.Run("that listens, and speaks", func(t *testing.T) {
		dialTo(t, func(c net.Conn) {
			defer c.Close()
			c.Write([]byte{1, 3, 0, 0, 0, 0, 0, 0})
			io.Copy(io.Discard, c)
		}, "the peer speaks version 1 of smux, and this side version 2")
	})
}

// dialTo dials somebody who does not speak smux, and requires an error with these parts.
func dialTo(t *testing.T, peer func(net.Conn), parts ...string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	done := make(chan struct{})
	go func() { // ends with the connection
		defer close(done)
		if c, err := l.Accept(); err == nil {
			peer(c)
		}
	}()
	w, err := wire.Dial(t.Context(), "smux://"+l.Addr().String(), wire.Options{})
	if err == nil { // the peer was not quicker
		_, err = w.ReadFrame(100)
		w.Close()
	}
	for _, p := range parts {
		require.ErrorContains(t, err, p)
	}
	<-done
}

func TestWhatIsNotSmuxIsToldApartQuickly(t *testing.T) {
	t.Run("a tcp Wire that listens", func(t *testing.T) {
		l := listen(t, "tcp://127.0.0.1:0", wire.Options{})
		there := make(chan error)
		go func() { // ends with the Wire
			w, err := l.Accept()
			if err == nil {
				defer w.Close()
				if _, err = w.ReadFrame(1000); err != nil {
					w.WriteFrames([][]byte{[]byte("what was that?")})
				}
			}
			there <- err
		}()
		w, err := wire.Dial(t.Context(), "smux"+strings.TrimPrefix(l.URL(), "tcp"), wire.Options{})
		if err == nil { // the peer was not quicker
			_, err = w.ReadFrame(100)
			require.NoError(t, w.Close())
		}
		require.ErrorContains(t, err, "does not speak smux")
		require.ErrorContains(t, err, `is it a "tcp" or "tls" Wire`)
		require.ErrorIs(t, <-there, wire.ErrFrameTooLarge)
	})
	for name, sent := range map[string]string{"a tcp Wire that dials": "\x00\x00\x00\x05hello", "a browser": "GET / HTTP/1.1\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, "smux://127.0.0.1:0", wire.Options{})
			c, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "smux://"))
			require.NoError(t, err)
			defer c.Close()
			_, err = io.WriteString(c, sent)
			require.NoError(t, err)
			w, err := l.Accept()
			require.NoError(t, err)
			defer w.Close()
			_, err = w.ReadFrame(100)
			require.ErrorContains(t, err, "does not speak smux")
			require.ErrorContains(t, err, fmt.Sprintf("%q", sent[:min(len(sent), 8)])[:5])
			_, err = c.Read(make([]byte, 1))
			require.Error(t, err, "the connection is closed")
		})
	}
	t.Run("two that dial", func(t *testing.T) {
		c, s := tcpPair(t)
		a, err := smuxwire.Client(c)
		require.NoError(t, err)
		defer a.Close()
		b, err := smuxwire.Client(s)
		require.NoError(t, err)
		defer b.Close()
		a.Open(t.Context()) // may learn already that it failed
		<-b.Done()
		require.ErrorContains(t, b.Err(), "is one of the two a Client, and the other a Server?")
		<-a.Done()
	})
	t.Run("frames that smux does not know", func(t *testing.T) {
		c, s := tcpPair(t)
		m, err := smuxwire.Server(s)
		require.NoError(t, err)
		defer m.Close()
		_, err = c.Write([]byte{2, 77, 0, 0, 0, 0, 0, 0})
		require.NoError(t, err)
		<-m.Done()
		require.ErrorContains(t, m.Err(), "the peer broke the protocol of smux")
	})
	t.Run("nobody", func(t *testing.T) {
		c, s := tcpPair(t)
		m, err := smuxwire.Server(s)
		require.NoError(t, err)
		defer m.Close()
		require.NoError(t, c.Close())
		_, err = m.Accept()
		require.True(t, errors.Is(err, io.ErrUnexpectedEOF))
	})
}

func TestWiresThatThePeerHasLeftAreStillAccepted(t *testing.T) {
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
