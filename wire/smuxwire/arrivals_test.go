package smuxwire

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
)

// raw is a peer that sends arbitrary smux frames. From its received frames, it keeps only the
// windows.
type raw struct {
	t       *testing.T
	version byte
	conn    net.Conn

	mu      sync.Mutex
	changed *sync.Cond
	updates map[uint32]uint32 // guarded by mu; the latest limit of each stream
	ended   bool              // guarded by mu
}

// attack returns a Mux and a raw peer of it.
func attack(t *testing.T, version int, opts ...Option) (*Mux, *raw) {
	ours, theirs := net.Pipe()
	m, err := Server(ours, append(opts, WithVersion(version))...)
	require.NoError(t, err)
	require.NoError(t, theirs.SetWriteDeadline(time.Now().Add(2*time.Minute)))
	r := &raw{t: t, version: byte(version), conn: theirs, updates: map[uint32]uint32{}}
	r.changed = sync.NewCond(&r.mu)
	go r.listen() // ends with the connection
	t.Cleanup(func() { m.Close(); theirs.Close() })
	return m, r
}

func (r *raw) listen() {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.ended = true
		r.changed.Broadcast()
	}()
	var head [headerSize]byte
	for {
		if _, err := io.ReadFull(r.conn, head[:]); err != nil {
			return
		}
		b := make([]byte, binary.LittleEndian.Uint16(head[2:]))
		if _, err := io.ReadFull(r.conn, b); err != nil {
			return
		}
		if head[1] == commandUpdate {
			id, read := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(b)
			r.mu.Lock()
			r.updates[id] = read + binary.LittleEndian.Uint32(b[4:])
			r.changed.Broadcast()
			r.mu.Unlock()
		}
	}
}

// limit waits until the window of a stream reaches the given number of bytes.
func (r *raw) limit(id, bytes uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.updates[id] < bytes && !r.ended {
		r.changed.Wait()
	}
}

func (r *raw) send(list ...any) error {
	_, err := r.conn.Write(frames(r.version, list...))
	return err
}

// ones returns n frames of one zero byte each.
func (r *raw) ones(id uint32, n int) []byte {
	one := frames(r.version, commandData, int(id), "\x00")
	var b []byte
	for range n {
		b = append(b, one...)
	}
	return b
}

// open opens a stream and returns the Wire.
func (r *raw) open(m *Mux, id int) wire.Wire {
	require.NoError(r.t, r.send(commandOpen, id, ""))
	w, err := m.Accept()
	require.NoError(r.t, err)
	return w
}

// Frames of one byte block the connection before they hold much memory.
func TestCrowd_OneByteFrames(t *testing.T) {
	for _, version := range []int{1, 2} {
		const n, most = 40_000, initialWindow / perFrame
		m, r := attack(t, version, WithWires(4))
		w := r.open(m, 1)
		all := r.ones(1, n)
		before := weightest.Heap()
		sent := make(chan error, 1)
		go func() { // ends when all was read
			_, err := r.conn.Write(all)
			sent <- err
		}()
		require.Eventually(t, m.conn.frames.full, 2*time.Minute, time.Millisecond)
		runtime.Gosched()
		held := weightest.HeldSince(before, 3*most*perFrame)
		t.Logf("version %d: %d bytes for %d frames", version, held, m.conn.frames.frames.Load())
		require.EqualValues(t, most, m.conn.frames.frames.Load())
		require.Less(t, held, 3*most*perFrame)

		for range n / 4 { // the zeros are lengths
			f, err := w.ReadFrame(0)
			require.NoError(t, err)
			require.Empty(t, f)
		}
		require.NoError(t, <-sent)
		require.NoError(t, m.Err(), "a peer that keeps to its window is not cut off")
		require.Zero(t, m.conn.frames.frames.Load())
		require.False(t, m.conn.frames.full())
	}
}

// A peer that exceeds its window is disconnected.
func TestWindow_Exceeded(t *testing.T) {
	m, r := attack(t, 2)
	w := r.open(m, 1)
	piece := string(make([]byte, 32<<10))
	for range initialWindow / len(piece) {
		require.NoError(t, r.send(commandData, 1, piece))
	}
	for range initialWindow / 4 {
		_, err := w.ReadFrame(0)
		require.NoError(t, err)
	}
	r.limit(1, initialWindow*3/2) // the library sends an update after each half
	for range initialWindow / 2 / len(piece) {
		require.NoError(t, r.send(commandData, 1, piece))
	}
	require.NoError(t, m.Err(), "it has kept to its window")
	for r.send(commandData, 1, piece) == nil {
	}
	require.Eventually(t, func() bool { return m.Err() != nil }, 2*time.Minute, time.Millisecond)
	require.ErrorContains(t, m.Err(), "bytes more on stream 1 than its window admits")
	var err error
	for err == nil {
		_, err = w.ReadFrame(0)
	}
	require.ErrorContains(t, err, "than its window admits")
}

// A stream that is over releases its frames.
func TestStream_ReleasesFrames(t *testing.T) {
	m, r := attack(t, 2)
	w := r.open(m, 1)
	b := r.open(m, 3)
	all := append(r.ones(1, 10_000), frames(2, commandData, 3, "\x00\x00\x00\x01x")...)
	sent := make(chan error, 1)
	go func() { // ends when b is read
		_, err := r.conn.Write(all)
		sent <- err
	}()
	require.Eventually(t, m.conn.frames.full, 2*time.Minute, time.Millisecond)
	require.NoError(t, w.Close())
	f, err := b.ReadFrame(1)
	require.NoError(t, err)
	require.Equal(t, "x", string(f))
	require.NoError(t, <-sent)
	require.Zero(t, m.conn.frames.frames.Load())
	require.NoError(t, m.Err())
}

// The library gets empty frames while the connection is blocked, so that it does not time out.
func TestConn_HeldUpIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data := frames(2, commandData, 1, "hello")
		c := newConn(half{Reader: bytes.NewReader(data)}, 2, new(log))
		c.frames = newCrowd(1, 1)
		c.frames.joined(1)
		var head [headerSize]byte
		before := time.Now()
		for range 6 {
			n, err := c.Read(head[:])
			require.NoError(t, err)
			require.Equal(t, frames(2, commandNone, 0, ""), head[:n])
		}
		require.Equal(t, 6*still, time.Since(before))
		go func() { // ends at once
			fakeclock.Sleep(time.Second)
			c.frames.left(0)
		}()
		n, err := c.Read(head[:])
		require.NoError(t, err)
		require.Equal(t, data[:headerSize], head[:n])
		require.Equal(t, 6*still+time.Second, time.Since(before))
	})
}

// A stream can be opened only once.
func TestStream_OpenedOnce(t *testing.T) {
	m, r := attack(t, 2)
	r.open(m, 1)
	r.send(commandOpen, 1, "")
	<-m.Done()
	require.ErrorContains(t, m.Err(), "the peer opened stream 1, which is open")
}

// Peers with the stock library that send little at a time are not disconnected.
func TestCrowd_StockPeers(t *testing.T) {
	for _, version := range []int{1, 2} {
		ours, theirs := net.Pipe()
		m, err := Server(ours, WithVersion(version), WithWires(4))
		require.NoError(t, err)
		cfg := smux.DefaultConfig()
		cfg.Version, cfg.MaxFrameSize = version, 3
		peer, err := smux.Client(theirs, cfg)
		require.NoError(t, err)
		st, err := peer.OpenStream()
		require.NoError(t, err)
		w, err := m.Accept()
		require.NoError(t, err)
		const size = 60_000
		sent := make(chan error, 1)
		go func() { // ends when all was read
			_, err := st.Write(binary.BigEndian.AppendUint32(nil, size))
			if err == nil {
				_, err = st.Write(make([]byte, size))
			}
			sent <- err
		}()
		require.Eventually(t, m.conn.frames.full, 2*time.Minute, time.Millisecond, "without a reader")
		f, err := w.ReadFrame(size)
		require.NoError(t, err)
		require.Len(t, f, size)
		require.NoError(t, <-sent)
		require.NoError(t, m.Err())
		require.NoError(t, m.Close())
		peer.Close()
	}
}

// A crowd is full as a whole, or in one stream.
func TestCrowd_WholeOrStream(t *testing.T) {
	c := newCrowd(6, 4)
	var a, b receiveBuffer
	for range 3 {
		a.arrived(10, c)
	}
	require.False(t, c.full())
	a.arrived(10, c)
	require.True(t, c.full(), "of one")
	a.taken(9, c)
	require.True(t, c.full())
	a.taken(1, c)
	require.False(t, c.full())
	<-c.fewer
	b.arrived(1, c)
	b.arrived(1, c)
	require.False(t, c.full())
	b.arrived(1, c)
	require.True(t, c.full(), "of both")
	a.taken(25, c)
	<-c.fewer
	require.EqualValues(t, 4, c.frames.Load())
	a.forget(c)
	b.forget(c)
	require.Zero(t, c.frames.Load())
}
