package wire_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
)

// script is a conn with a scripted Read, and a function as Write.
type script struct {
	io.Reader
	write func(p []byte) (int, error)
}

func (s script) Write(p []byte) (int, error) { return s.write(p) }
func (s script) Close() error                { return nil }

// stream returns the encoding of frames.
func stream(frames ...string) []byte {
	var b []byte
	for _, f := range frames {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(f))), f...)
	}
	return b
}

// readAll reads until an error.
func readAll(w wire.Wire, max int) (frames []string, err error) {
	for {
		f, err := w.ReadFrame(max)
		if err != nil {
			return frames, err
		}
		frames = append(frames, string(f))
	}
}

// Frames are found at any split of the reads.
func TestStream_AnySplit(t *testing.T) {
	want := []string{"a", "", "frame", strings.Repeat("x", 5000), strings.Repeat("y", 100_000), "", "end"}
	data := stream(want...)
	readers := map[string]io.Reader{
		"all at once":      bytes.NewReader(data),
		"byte by byte":     iotest.OneByteReader(bytes.NewReader(data)),
		"halves":           iotest.HalfReader(bytes.NewReader(data)),
		"end with data":    iotest.DataErrReader(bytes.NewReader(data)),
		"length cut in 2":  io.MultiReader(bytes.NewReader(data[:2]), bytes.NewReader(data[2:])),
		"reads of nothing": io.MultiReader(bytes.NewReader(nil), &lazy{r: bytes.NewReader(data)}),
	}
	for name, r := range readers {
		t.Run(name, func(t *testing.T) {
			got, err := readAll(wire.FromConn(script{Reader: r}), 1<<20)
			require.Equal(t, io.EOF, err)
			require.Equal(t, want, got)
		})
	}
}

// lazy is a Reader every other Read of which returns no bytes, which the interface permits.
type lazy struct {
	r    io.Reader
	busy bool
}

func (l *lazy) Read(p []byte) (int, error) {
	if l.busy = !l.busy; !l.busy {
		return 0, nil
	}
	return l.r.Read(p)
}

// The end of a stream inside a frame is unexpected.
func TestStream_EndInsideFrame(t *testing.T) {
	data := stream("one", "", "three")
	// The number of frames before the end of a stream of this length, if the stream ends between
	// frames.
	ends := map[int]int{0: 0, 7: 1, 11: 2, len(data): 3}
	for n := range len(data) + 1 {
		w := wire.FromConn(script{Reader: bytes.NewReader(data[:n])})
		frames, err := readAll(w, 100)
		if want, ok := ends[n]; ok {
			require.Equal(t, io.EOF, err, "%d bytes", n)
			require.Len(t, frames, want)
		} else {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%d bytes", n)
		}
		_, again := w.ReadFrame(100)
		require.Equal(t, err, again, "the error stays")
	}
}

// A read error keeps its cause, after the frames before it.
func TestStream_ReadError(t *testing.T) {
	cause := errors.New("cable cut")
	w := wire.FromConn(script{Reader: io.MultiReader(bytes.NewReader(stream("last")), iotest.ErrReader(cause))})
	frames, err := readAll(w, 100)
	require.Equal(t, []string{"last"}, frames)
	require.ErrorIs(t, err, cause)
	require.EqualError(t, err, "wire: read: cable cut")
}

// A Reader that breaks its contract is an error.
func TestStream_BadReaders(t *testing.T) {
	for name, n := range map[string]int{"too much": 1 << 20, "negative": -1, "nothing, for ever": 0} {
		t.Run(name, func(t *testing.T) {
			_, err := wire.FromConn(script{Reader: broken(n)}).ReadFrame(100)
			require.Error(t, err)
		})
	}
}

type broken int

func (b broken) Read([]byte) (int, error) { return int(b), nil }

// A frame that is too large is refused by its length alone.
func TestStream_TooLarge(t *testing.T) {
	for announced, max := range map[uint32]int{11: 10, 1: 0, 0: -1, math.MaxUint32: math.MaxInt32} {
		length := binary.BigEndian.AppendUint32(nil, announced)
		a, b := net.Pipe() // it stays open, so only the length reveals the error
		go a.Write(length)
		w := wire.FromConn(b)
		_, err := w.ReadFrame(max)
		require.ErrorIs(t, err, wire.ErrFrameTooLarge)
		require.ErrorContains(t, err, "bytes are announced")
		_, again := w.ReadFrame(math.MaxInt)
		require.Equal(t, err, again, "a larger limit does not help afterwards")
		a.Close()
	}
}

// An announced length costs no memory.
func TestStream_AnnouncedLength(t *testing.T) {
	// The peer announces a frame of 512 MiB and closes before it sends any of the frame.
	costs := func(most int, connect func() wire.Wire) {
		spent := weightest.AllocatedAtMost(most, func() {
			_, err := connect().ReadFrame(1 << 30)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		})
		require.Less(t, spent, most)
	}
	length := []byte{0x20, 0, 0, 0}
	t.Run("socket", func(t *testing.T) {
		costs(64<<10, func() wire.Wire {
			a, b := tcpPair(t)
			a.Write(length)
			a.Close()
			return wire.FromConn(b)
		})
	})
	t.Run("other conn", func(t *testing.T) {
		costs(64<<10, func() wire.Wire {
			return wire.FromConn(script{Reader: iotest.OneByteReader(bytes.NewReader(length))})
		})
	})
	t.Run("a part comes", func(t *testing.T) {
		part := make([]byte, 1<<20)
		costs(5<<20, func() wire.Wire { // the sum of buffers that double until they hold 1 MiB
			return wire.FromConn(script{Reader: io.MultiReader(bytes.NewReader(length), bytes.NewReader(part))})
		})
	})
}

// tcpPair returns two ends of a bare TCP connection, which are closed when t ends.
func tcpPair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	b, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() {
		a.Close()
		b.Close()
	})
	return a, b
}

// An idle TCP wire holds no buffer.
func TestStream_IdleTCP(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a socket cannot be waited for without a buffer")
	}
	const n = 100
	var wires []wire.Wire
	var peers []net.Conn
	reads := make(chan error, n)
	for range n {
		a, b := tcpPair(t)
		peers, wires = append(peers, a), append(wires, wire.FromConn(b))
	}
	for i, w := range wires { // each has been busy before
		go peers[i].Write(stream(strings.Repeat("x", 100_000), "end"))
		for range 2 {
			_, err := w.ReadFrame(1 << 20)
			require.NoError(t, err)
		}
	}
	waiting := make(chan struct{}, n)
	for _, w := range wires {
		go func() { // ends when the wire is closed
			waiting <- struct{}{}
			_, err := w.ReadFrame(1 << 20)
			reads <- err
		}()
	}
	for range n {
		<-waiting
	}
	idle := weightest.Heap()
	for range 100 { // the goroutines may still be on their way to their wait
		if runtime.Gosched(); weightest.Heap() < idle {
			idle = weightest.Heap()
		}
	}
	for _, w := range wires {
		w.Close()
	}
	for range n {
		require.ErrorIs(t, <-reads, net.ErrClosed)
	}
	t.Logf("%d bytes per idle wire", (idle-weightest.Heap())/n)
	require.Less(t, (idle-weightest.Heap())/n, 1<<10, "bytes for each wire that waits")
}

// Frames share one write.
func TestStream_OneWrite(t *testing.T) {
	var writes [][]byte
	w := wire.FromConn(script{write: func(p []byte) (int, error) {
		writes = append(writes, slices.Clone(p))
		return len(p), nil
	}})
	small := [][]byte{[]byte("one"), nil, []byte("three")}
	require.NoError(t, w.WriteFrames(small))
	require.Equal(t, [][]byte{stream("one", "", "three")}, writes)

	writes = nil
	large := strings.Repeat("x", 1<<20)
	require.NoError(t, w.WriteFrames([][]byte{[]byte("one"), []byte(large), []byte("three")}))
	require.Len(t, writes, 3, "what is before, the large frame itself, what is behind")
	require.Equal(t, stream("one", large, "three"), slices.Concat(writes...))

	writes = nil
	require.NoError(t, w.WriteFrames(nil))
	require.NoError(t, w.(wire.BatchWriter).WriteBatch(nil))
	require.Empty(t, writes, "nothing to write")
}

// A failed write ends writing.
func TestStream_FailedWrite(t *testing.T) {
	cause := errors.New("cable cut")
	for name, write := range map[string]func(p []byte) (int, error){
		"with an error":    func(p []byte) (int, error) { return 1, cause },
		"without an error": func(p []byte) (int, error) { return len(p) - 1, nil },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			w := wire.FromConn(script{write: func(p []byte) (int, error) {
				calls++
				return write(p)
			}})
			err := w.WriteFrames([][]byte{[]byte("frame")})
			require.Error(t, err)
			require.Equal(t, err, w.WriteFrames([][]byte{[]byte("frame")}), "the peer may have got half a frame, so nothing can follow")
			require.Equal(t, err, w.(wire.BatchWriter).WriteBatch(stream("frame")))
			require.Equal(t, 1, calls)
			require.NoError(t, w.Close())
			require.ErrorIs(t, w.WriteFrames(nil), net.ErrClosed)
		})
	}
}

// The optional interfaces match the abilities of the conn.
func TestFromConn_Interfaces(t *testing.T) {
	tcp, _ := tcpPair(t)
	inProcess, _ := net.Pipe()
	for name, test := range map[string]struct {
		conn           io.ReadWriteCloser
		try, deadlines bool
	}{
		"TCP":                    {tcp, runtime.GOOS != "windows", true},
		"net.Conn":               {inProcess, false, true},
		"a type around TCP":      {struct{ *net.TCPConn }{tcp.(*net.TCPConn)}, false, true},
		"any io.ReadWriteCloser": {script{}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := wire.FromConn(test.conn)
			_, ok := w.(wire.TryWriter)
			require.Equal(t, test.try, ok)
			_, ok = w.(deadliner)
			require.Equal(t, test.deadlines, ok)
			_, ok = w.(wire.Secure)
			require.False(t, ok)
		})
	}
}

// A read deadline inside a frame loses nothing.
func TestDeadline_InsideFrame(t *testing.T) {
	a, b := tcpPair(t)
	w := wire.FromConn(b)
	d := w.(deadliner)
	data := stream("a frame in two parts")
	for _, part := range [][]byte{data[:3], data[3:10]} {
		_, err := a.Write(part)
		require.NoError(t, err)
		require.NoError(t, d.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
		_, err = w.ReadFrame(100)
		require.Error(t, err)
		require.NoError(t, d.SetReadDeadline(time.Time{}))
	}
	_, err := a.Write(data[10:])
	require.NoError(t, err)
	frame, err := w.ReadFrame(100)
	require.NoError(t, err)
	require.Equal(t, "a frame in two parts", string(frame))
}

// The error of a reset names the operation and the ends.
func TestStream_ResetError(t *testing.T) {
	a, b := tcpPair(t)
	require.NoError(t, a.(*net.TCPConn).SetLinger(0))
	a.Close()
	_, err := wire.FromConn(b).ReadFrame(100)
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.ErrorContains(t, err, "wire: read: read tcp "+b.LocalAddr().String()+"->"+b.RemoteAddr().String())
}

// Any other conn is waited for with little memory.
func TestStream_OtherConn(t *testing.T) {
	const idle, busy, frame = 1<<10 + 128, 32 << 10, 4 + 20_000
	a, b := net.Pipe()
	defer a.Close()
	offered := make(chan int, 1)
	w := wire.FromConn(script{Reader: readFunc(func(p []byte) (int, error) {
		offered <- len(p)
		return b.Read(p)
	})})
	ended := make(chan error)
	go func() { // ends with the stream
		for {
			if _, err := w.ReadFrame(1 << 20); err != nil {
				ended <- err
				return
			}
		}
	}()
	require.Equal(t, idle, <-offered, "before the first frame")
	a.Write(stream("small"))
	require.Equal(t, idle, <-offered, "after a small one")
	go a.Write(stream(strings.Repeat("x", 20_000)))
	require.Equal(t, frame-idle, <-offered, "the rest of a large one, and no more")
	require.Equal(t, idle, <-offered, "idle again")
	go a.Write(bytes.Repeat(stream("13 bytes."), 500))
	rest := idle % 13
	require.Equal(t, busy-rest, <-offered, "the first read was full, so there are more small ones")
	require.Equal(t, idle, <-offered, "idle again")
	b.Close()
	require.ErrorIs(t, <-ended, io.ErrClosedPipe)
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// TryWriteBatch detects a lost peer.
func TestTryWriteBatch_PeerGone(t *testing.T) {
	a, b := tcpPair(t)
	w, ok := wire.FromConn(b).(wire.TryWriter)
	if !ok {
		t.Skip("sockets have no TryWriteBatch here")
	}
	require.NoError(t, a.(*net.TCPConn).SetLinger(0))
	a.Close()
	b.Read(make([]byte, 1)) // waits for the reset
	_, err := w.TryWriteBatch(stream("frame"))
	var op *net.OpError
	require.ErrorAs(t, err, &op)
	require.ErrorContains(t, err, "wire: write: write tcp ")
	_, again := w.TryWriteBatch(stream("frame"))
	require.Equal(t, err, again, "the error stays")
	require.Equal(t, err, w.WriteBatch(stream("frame")))
}
