package wiretest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestSoundWirePasses(t *testing.T) {
	t.Run("with all optional interfaces but deadlines", func(t *testing.T) {
		Run(t, func(*testing.T) (a, b wire.Wire) { return wire.Pipe() })
	})
	t.Run("with the five methods only", func(t *testing.T) {
		Run(t, func(*testing.T) (a, b wire.Wire) {
			a, b = wire.Pipe()
			return plain{a}, plain{b}
		})
	})
	t.Run("with deadlines and without a buffer", func(t *testing.T) {
		Run(t, func(*testing.T) (a, b wire.Wire) {
			p, q := net.Pipe()
			return wire.FromConn(p), wire.FromConn(q)
		})
	})
}

// TestEveryCheckFailsForAWireThatBreaksIt runs, for each check, broken wires that it must find. The
// unbroken wires that they are made of pass (see above).
func TestEveryCheckFailsForAWireThatBreaksIt(t *testing.T) {
	tests := []struct {
		check string // of checks
		fault string
		wrap  func(w wire.Wire) wire.Wire
	}{
		{"frames of all sizes arrive whole", "cuts large frames", func(w wire.Wire) wire.Wire { return &alters{plain{w}, cut} }},
		{"frames of all sizes arrive whole", "joins two frames", func(w wire.Wire) wire.Wire { return &alters{plain{w}, join} }},
		{"frames of all sizes arrive whole", "flips a bit", func(w wire.Wire) wire.Wire { return &alters{plain{w}, flip} }},
		{"empty frames are frames", "drops empty frames", func(w wire.Wire) wire.Wire { return &alters{plain{w}, dropEmpty} }},
		{"frames keep their order in both directions at once", "swaps frames", func(w wire.Wire) wire.Wire { return &swaps{plain: plain{w}} }},
		{"both directions work under load", "swaps frames of one call", func(w wire.Wire) wire.Wire { return &alters{plain{w}, reverse} }},
		{"none of many frames is lost, doubled or moved", "loses one", loses},
		{"a frame as large as allowed is accepted", "is off by one", func(w wire.Wire) wire.Wire { return strict{plain{w}} }},
		{"a frame larger than allowed is refused", "ignores max", func(w wire.Wire) wire.Wire { return lax{plain{w}} }},
		{"a frame larger than allowed is refused", "has an error of its own", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"buffers are not kept after WriteFrames", "keeps them", func(w wire.Wire) wire.Wire { return &keeps{Wire: w} }},
		{"a frame stays valid until the next ReadFrame", "reads ahead into the same memory", func(w wire.Wire) wire.Wire { return &readsAhead{plain: plain{w}} }},
		{"a peer that does not read stops the writer", "has no bound", func(w wire.Wire) wire.Wire { return &unbounded{plain: plain{w}} }},
		{"a peer that does not read stops the writer", "loses a frame", func(w wire.Wire) wire.Wire { return &lossy{plain: plain{w}} }},
		{"Close ends a ReadFrame that waits", "does not wake it", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"Close ends a ReadFrame that waits", "says io.EOF", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"Close ends a WriteFrames that waits", "does not wake it", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"no other method waits for a ReadFrame and a WriteFrames that wait", "does not wake them", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"Close may be called repeatedly and concurrently", "fails the second time", func(w wire.Wire) wire.Wire { return &once{Wire: w} }},
		{"after Close everything fails with net.ErrClosed", "does not close", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"after Close everything fails with net.ErrClosed", "has an error of its own", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"the peer's Close is io.EOF behind all frames", "has an error of its own", func(w wire.Wire) wire.Wire { return mute{plain{w}} }},
		{"the peer's Close is io.EOF behind all frames", "loses the last frame", func(w wire.Wire) wire.Wire { return &swaps{plain: plain{w}} }},
		{"the peer's Close ends a WriteFrames that waits", "does not notice", func(w wire.Wire) wire.Wire { return &sleepy{Wire: w} }},
		{"addresses are there and stay", "has none", func(w wire.Wire) wire.Wire { return nowhere{w} }},
		{"addresses are there and stay", "forgets them", func(w wire.Wire) wire.Wire { return &forgets{Wire: w} }},
		{"WriteBatch writes many frames", "drops the last", func(w wire.Wire) wire.Wire { return badBatch{Wire: w} }},
		{"WriteBatch does not keep the batch", "keeps it", func(w wire.Wire) wire.Wire { return &keeps{Wire: w} }},
		{"none of many frames is lost, doubled or moved by WriteBatch", "loses one", loses},
		{"Close ends a WriteBatch that waits", "does not wake it", func(w wire.Wire) wire.Wire { return drowsy{whole(w)} }},
		{"WriteVector writes frames in pieces", "drops what follows an empty piece", func(w wire.Wire) wire.Wire { return badBatch{Wire: w} }},
		{"WriteVector does not keep the pieces", "keeps them", func(w wire.Wire) wire.Wire { return &keeps{Wire: w} }},
		{"none of many frames is lost, doubled or moved by WriteVector", "loses one", loses},
		{"Close ends a WriteVector that waits", "does not wake it", func(w wire.Wire) wire.Wire { return drowsy{whole(w)} }},
		{"TryWriteBatch never waits", "waits", func(w wire.Wire) wire.Wire { return badBatch{Wire: w} }},
		{"none of many frames is lost, doubled or moved by TryWriteBatch", "loses one", loses},
		{"Buffered tells the truth", "lies", func(w wire.Wire) wire.Wire { return liar{w} }},
		{"Keep leaves a frame alone", "gives it away twice", func(w wire.Wire) wire.Wire { return generous{w} }},
		{"Keep leaves a frame alone", "gives more than the frame fills", func(w wire.Wire) wire.Wire { return &lavish{Wire: w} }},
		{"Progress counts what crosses", "counts nothing", func(w wire.Wire) wire.Wire { return countless{w} }},
		{"optional methods make whole interfaces", "has half of one", func(w wire.Wire) wire.Wire { return half{w} }},
		{"Receiving tells what half a frame holds", "says nothing", func(w wire.Wire) wire.Wire { return asides{w, 0} }},
		{"Receiving tells what half a frame holds", "forgets to end it", func(w wire.Wire) wire.Wire { return asides{w, 1} }},
		{"Receiving tells what half a frame holds", "believes what is announced", func(w wire.Wire) wire.Wire { return asides{w, 16 << 20} }},
		{"a read deadline ends ReadFrame and loses nothing", "ignores it", func(w wire.Wire) wire.Wire { return timeless{w} }},
		{"a write deadline ends WriteFrames", "ignores it", func(w wire.Wire) wire.Wire { return timeless{w} }},
	}
	broken := map[string]bool{}
	for _, test := range tests {
		t.Run(test.check+"/"+test.fault, func(t *testing.T) {
			a, b := wire.Pipe()
			defer b.Close()
			defer a.Close()
			failures := run(t, test.check, test.wrap(a), test.wrap(b))
			t.Log(failures)
			require.NotEmpty(t, failures, "the check does not find a Wire that %s", test.fault)
		})
		broken[test.check] = true
	}
	for _, c := range checks {
		require.True(t, broken[c.name], "no broken wire shows that the check %q can fail", c.name)
	}
}

// run runs one check over a and b and returns its failures.
func run(t *testing.T, name string, a, b wire.Wire) []string { return runFor(t, short, name, a, b) }

func runFor(t *testing.T, p patience, name string, a, b wire.Wire) []string {
	for _, c := range checks {
		if c.name == name {
			require.True(t, c.applies == nil || c.applies(a), "the broken Wire lacks the interface")
			r := new(recorder)
			done := make(chan struct{})
			go func() { // which FailNow ends
				defer close(done)
				c.run(&rig{T: r, a: a, b: b, patience: p, hung: new(bool)})
			}()
			<-done
			return r.failures
		}
	}
	require.Fail(t, "no such check", name)
	return nil
}

// short is enough patience for Wires within one process.
var short = patience{carry: 100 * time.Millisecond, end: 100 * time.Millisecond}

// recorder is a T that remembers failures.
type recorder struct{ failures []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}
func (r *recorder) FailNow() { runtime.Goexit() }

// plain hides the optional interfaces of a Wire.
type plain struct{ wire.Wire }

// alters writes other frames than it was given.
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

// swaps writes every call's frames after those of the next.
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

// strict refuses a frame as large as allowed.
type strict struct{ plain }

func (s strict) ReadFrame(max int) ([]byte, error) { return s.plain.ReadFrame(max - 1) }

// lax accepts any frame.
type lax struct{ plain }

func (l lax) ReadFrame(int) ([]byte, error) { return l.plain.ReadFrame(1 << 30) }

// mute does not say what is wrong.
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

// keeps writes later from memory that it was only lent.
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

// readsAhead has read the next frame when it returns one.
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

// unbounded takes whatever it is given.
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

// sleepy does nothing on Close.
type sleepy struct{ wire.Wire }

func (s *sleepy) Close() error { return nil }

// once can be closed once.
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

// forgets has an address until it is closed.
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

// badBatch does everything with batches wrong.
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

// liar always has a frame.
type liar struct{ wire.Wire }

func (liar) Buffered() bool          { return true }
func (liar) Keep() *transport.Buffer { return nil }

// generous gives memory away whenever it is asked.
type generous struct{ wire.Wire }

func (generous) Buffered() bool          { return false }
func (generous) Keep() *transport.Buffer { return transport.TakeBuffer(64<<10 + 20) }

// lavish gives too much memory away, once.
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
func (countless) Receiving() int                    { return 0 }

// half has one of the two methods of a Meter.
type half struct{ wire.Wire }

func (half) Receiving() int { return 0 }

// asides always has as much aside.
type asides struct {
	wire.Wire
	aside int
}

func (a asides) Receiving() int { return a.aside }

func (a asides) Progress() (received, sent uint64) { return a.Wire.(wire.Meter).Progress() }

// timeless ignores deadlines.
type timeless struct{ wire.Wire }

func (timeless) SetReadDeadline(time.Time) error  { return nil }
func (timeless) SetWriteDeadline(time.Time) error { return nil }
