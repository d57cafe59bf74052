package wiretest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// plain hides the optional interfaces of a Wire.
type plain struct{ wire.Wire }

// alters writes modified frames.
type alters struct {
	plain
	frames func([][]byte) [][]byte
}

func (a *alters) WriteFrames(frames [][]byte) error { return a.plain.WriteFrames(a.frames(frames)) }

func cut(frames [][]byte) [][]byte {
	var list [][]byte
	for _, f := range frames {
		list = append(list, f[:min(len(f), 65535)])
	}
	return list
}

func join(frames [][]byte) [][]byte {
	if len(frames) < 2 {
		return frames
	}
	return append([][]byte{slices.Concat(frames[0], frames[1])}, frames[2:]...)
}

func flip(frames [][]byte) [][]byte {
	last := append([]byte{}, frames[len(frames)-1]...)
	if len(last) > 0 {
		last[len(last)-1] ^= 1
	}
	return append(frames[:len(frames)-1:len(frames)-1], last)
}

func dropEmpty(frames [][]byte) [][]byte {
	var list [][]byte
	for _, f := range frames {
		if len(f) > 0 {
			list = append(list, f)
		}
	}
	return list
}

func reverse(frames [][]byte) [][]byte {
	var list [][]byte
	for _, f := range frames {
		list = append([][]byte{f}, list...)
	}
	return list
}

// swaps writes the frames of each call after those of the next.
type swaps struct {
	plain
	held [][]byte
}

func (s *swaps) WriteFrames(frames [][]byte) error {
	var now [][]byte
	for _, f := range frames {
		now = append(now, append([]byte{}, f...))
	}
	if s.held == nil {
		s.held = now
		return nil
	}
	now, s.held = append(now, s.held...), nil
	return s.plain.WriteFrames(now)
}

// strict rejects a frame of the maximum size.
type strict struct{ plain }

func (s strict) ReadFrame(max int) ([]byte, error) { return s.plain.ReadFrame(max - 1) }

// lax accepts frames of any size.
type lax struct{ plain }

func (l lax) ReadFrame(int) ([]byte, error) { return l.plain.ReadFrame(1 << 30) }

// mute hides the reason of an error.
type mute struct{ plain }

func (m mute) ReadFrame(max int) ([]byte, error) {
	f, err := m.plain.ReadFrame(max)
	if errors.Is(err, net.ErrClosed) {
		err = io.EOF
	} else if err != nil {
		err = errors.New("something is wrong")
	}
	return f, err
}

// keeps writes frames later, from memory that the caller has only lent.
type keeps struct {
	wire.Wire
	frames [][]byte
	batch  []byte
	pieces [][]byte
}

func (k *keeps) WriteFrames(frames [][]byte) error {
	late := k.frames
	k.frames = append([][]byte{}, frames...)
	return k.Wire.WriteFrames(late)
}

func (k *keeps) WriteVector(pieces [][]byte) error {
	late := k.pieces
	k.pieces = pieces
	return k.Wire.(wire.BatchWriter).WriteBatch(bytes.Join(late, nil))
}

func (k *keeps) WriteBatch(batch []byte) error {
	late := k.batch
	k.batch = batch
	return k.Wire.(wire.BatchWriter).WriteBatch(late)
}

// readsAhead reads the next frame before it returns one.
type readsAhead struct {
	plain
	mem  [1 << 20]byte
	next int
	on   bool
}

func (r *readsAhead) ReadFrame(max int) ([]byte, error) {
	if !r.on {
		r.on = true
		f, err := r.plain.ReadFrame(max)
		r.next = copy(r.mem[:], f)
		if err != nil {
			return nil, err
		}
	}
	n := r.next
	f, err := r.plain.ReadFrame(max)
	r.next = copy(r.mem[:], f)
	return r.mem[:n], err
}

// unbounded ignores the limit of ReadFrame.
type unbounded struct{ plain }

func (u *unbounded) WriteFrames([][]byte) error { return nil }

// lossy drops the second frame.
type lossy struct {
	plain
	calls int
}

func (l *lossy) WriteFrames(frames [][]byte) error {
	if l.calls++; l.calls == 2 {
		return nil
	}
	return l.plain.WriteFrames(frames)
}

// sleepy has no effect in Close.
type sleepy struct{ wire.Wire }

func (s *sleepy) Close() error { return nil }

// once fails on the second Close.
type once struct {
	wire.Wire
	mu     sync.Mutex
	closed bool // guarded by mu
}

func (o *once) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return net.ErrClosed
	}
	o.closed = true
	return o.Wire.Close()
}

// nowhere has no address.
type nowhere struct{ wire.Wire }

func (nowhere) RemoteAddr() net.Addr { return nil }

// forgets has no address once it is closed.
type forgets struct {
	wire.Wire
	closed bool
}

func (f *forgets) Close() error { f.closed = true; return f.Wire.Close() }

func (f *forgets) LocalAddr() net.Addr {
	if f.closed {
		return &net.TCPAddr{}
	}
	return f.Wire.LocalAddr()
}

// badBatch handles batches incorrectly in every respect.
type badBatch struct{ wire.Wire }

func (b badBatch) WriteBatch(batch []byte) error {
	if len(batch) > 4096 {
		batch = batch[:len(batch)-4]
	}
	return b.Wire.(wire.BatchWriter).WriteBatch(batch)
}

func (b badBatch) WriteVector(pieces [][]byte) error {
	for _, p := range pieces {
		if len(p) == 0 {
			break
		}
		if err := b.Wire.(wire.BatchWriter).WriteBatch(p); err != nil {
			return err
		}
	}
	return nil
}

func (b badBatch) TryWriteBatch(batch []byte) (int, error) {
	return len(batch), b.Wire.(wire.BatchWriter).WriteBatch(batch)
}

// liar always reports a buffered frame.
type liar struct{ wire.Wire }

func (liar) Buffered() bool { return true }

func (liar) Keep() *transport.Buffer { return nil }

// generous returns a buffer on each call of Keep.
type generous struct{ wire.Wire }

func (generous) Buffered() bool { return false }

func (generous) Keep() *transport.Buffer { return transport.TakeBuffer(64<<10 + 20) }

// lavish returns a buffer that is too large, once.
type lavish struct {
	wire.Wire
	gave bool
}

func (l *lavish) Buffered() bool { return false }

func (l *lavish) Keep() *transport.Buffer {
	if l.gave {
		return nil
	}
	l.gave = true
	return transport.TakeBuffer(1 << 20)
}

// countless is a Meter that counts nothing.
type countless struct{ wire.Wire }

func (countless) Progress() (received, sent uint64) { return 0, 0 }

func (countless) Receiving() int { return 0 }

// half has only one of the two methods of a Meter.
type half struct{ wire.Wire }

func (half) Receiving() int { return 0 }

// asides always reports the same number of received bytes.
type asides struct {
	wire.Wire
	aside int
}

func (a asides) Receiving() int { return a.aside }

func (a asides) Progress() (received, sent uint64) { return a.Wire.(wire.Meter).Progress() }

// timeless ignores deadlines.
type timeless struct{ wire.Wire }

func (timeless) SetReadDeadline(time.Time) error { return nil }

func (timeless) SetWriteDeadline(time.Time) error { return nil }
