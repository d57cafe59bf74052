package limits

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// heldRig is a session that makes messages of one kind wait, and its other side, with bytes made
// beforehand.
type heldRig struct {
	t       *testing.T
	n       int
	node    *asterisque.Node
	s       *asterisque.Session
	peer    wire.Wire
	release chan struct{} // closed when handlers may return
	made    []byte        // messages of the peer
	first   []byte        // sent before the measurement
	apart   int           // bytes of the application
	keep    []any         // references of the application
}

// The functions of a heldRig.
const (
	waitUnary = iota + 1 // waits for release
	waitStream
	waitBorrowed
	waitKeyed
	giveSmall // at once: a result of 10 bytes
	give6000
	give100K
	fails       // with a message of 10 KiB
	failsDetail // with 256 KiB of detail
	failsStream // with a message of 100 bytes
	giveStream  // at once: a result of 10 bytes
)

func (r *heldRig) service() *asterisque.Service {
	svc := asterisque.NewService()
	wait := func(_ context.Context, b []byte) ([]byte, error) { <-r.release; return nil, nil }
	waitBlocks := func(_ context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) { <-r.release; return nil, nil }
	give := func(number uint16, size int) {
		result := make([]byte, size)
		asterisque.Func[[]byte, []byte](number, "give").Handle(svc, func(context.Context, []byte) ([]byte, error) { return result, nil })
	}
	asterisque.Func[[]byte, []byte](waitUnary, "wait").Handle(svc, wait)
	svc.Handle(waitStream, "wait", waitBlocks)
	svc.Handle(waitBorrowed, "wait", waitBlocks, asterisque.WithBorrowedParams())
	asterisque.Func[[]byte, []byte](waitKeyed, "wait").Handle(svc, wait, asterisque.WithKey(func(b []byte) uint64 { return binary.BigEndian.Uint64(b) }))
	give(giveSmall, 10)
	give(give6000, 6000)
	give(give100K, 100<<10)
	svc.Handle(giveStream, "give", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 10), nil })
	asterisque.Func[[]byte, []byte](fails, "fails").Handle(svc, func(context.Context, []byte) ([]byte, error) { return nil, errors.New(strings.Repeat("x", 10<<10)) })
	asterisque.Func[[]byte, []byte](failsDetail, "fails").Handle(svc, func(context.Context, []byte) ([]byte, error) {
		return nil, &asterisque.Abort{Code: codec.Failed, Detail: make([]byte, 256<<10)}
	})
	svc.Handle(failsStream, "fails", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
		return nil, errors.New(strings.Repeat("x", 100))
	})
	return svc
}

// add adds a frame to the messages of the peer.
func (r *heldRig) add(m interface{ AppendTo([]byte) []byte }) { r.addFrame(m.AppendTo(nil)) }

func (r *heldRig) addFrame(f []byte) {
	for _, f := range testkit.Divided(f) {
		r.made = append(binary.BigEndian.AppendUint32(r.made, uint32(len(f))), f...)
	}
}

// before moves the messages added so far to before the measurement.
func (r *heldRig) before() { r.first, r.made = append(r.first, r.made...), r.made[:0] }

// open adds an Open with parameters that are size bytes of CBOR.
func (r *heldRig) open(i int, function uint16, size int, meta message.Meta) {
	r.add(&message.Open{Pipe: uint64(2 * i), Function: function, Params: heldParams(i, size), Meta: meta})
}

// worker is the number of bytes of a node for each worker, without its goroutine.
const worker = 128

// begin connects both sides.
func (r *heldRig) begin(c *heldCase) {
	opts := []asterisque.Option{
		asterisque.WithService(r.service()), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(768<<20, 1<<30), Outbound: testkit.BytesOf(1<<29, 1<<30)}),
		asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: time.Hour, Calls: -1, Bytes: -1}),
	}
	r.node = asterisque.NewNode(append(opts, c.opts...)...)
	var there wire.Wire
	if c.stuck {
		r.peer, there = wire.Pipe()
	} else {
		a, b := testkit.TCPPair(r.t)
		r.peer, there = wire.FromConn(a), wire.FromConn(b)
	}
	r.t.Cleanup(func() { r.peer.Close(); r.node.Close() })
	sessions := make(chan *asterisque.Session, 1)
	go func() {
		s, err := r.node.Accept(testkit.Background, there)
		if err != nil {
			r.t.Error(err)
		}
		sessions <- s
	}()
	hi := testkit.Hello()
	hi.MaxMessage = 4 << 20
	require.NoError(r.t, r.peer.WriteFrames([][]byte{hi.AppendTo(nil)}))
	_, err := r.peer.ReadFrame(1 << 20)
	require.NoError(r.t, err)
	r.s = <-sessions
	require.NotNil(r.t, r.s)
}

// drain reads all messages.
func (r *heldRig) drain() {
	for {
		if _, err := r.peer.ReadFrame(8 << 20); err != nil {
			return
		}
	}
}

// counted returns the bytes that the statistics count.
func (r *heldRig) counted(c *heldCase) int {
	if c.once {
		return r.node.Stats().Held
	}
	st := r.s.Stats()
	return st.Inbound.Bytes + st.Outbound.Bytes + st.Holding + st.Receiving
}

// TestHeld_CountedIsHeld makes messages of one kind after the other wait, and compares the
// statistics with the growth of the heap: at least 0.8 of it is counted, and at most 1.25 of it for
// messages of 4 KiB and more. The heap also grows by memory kept for later, such as ended
// goroutines, but only at the first measurement.
func TestHeld_CountedIsHeld(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector holds more")
	}
	testkit.Goroutine() // for workers, which are reused
	room := make([]byte, 0, 26<<20)
	for _, c := range heldCases() {
		t.Run(c.name, func(t *testing.T) {
			var counted, held int
			for range 10 {
				counted, held = c.measure(t, room)
				large := counted >= flow.Held(4<<10)
				if 10*counted >= 8*held && (!large || 4*counted <= 5*held) {
					return
				}
			}
			t.Errorf("%d bytes are counted for each, and %d held", counted, held)
		})
	}
}

// measure returns the counted and the held bytes of each message of c while they wait. The messages
// of the peer are in room, which is allocated before the measurement.
func (c *heldCase) measure(t *testing.T, room []byte) (counted, held int) {
	r := &heldRig{t: t, n: c.n, release: make(chan struct{}), made: room[:0]}
	r.begin(c)
	if c.add != nil {
		c.add(r)
	}
	if len(r.first) > 0 {
		require.NoError(t, r.peer.(wire.BatchWriter).WriteBatch(r.first))
		r.first = nil
		require.Eventually(t, func() bool { return r.s.Stats().Running > 0 }, testkit.Patience, time.Millisecond)
	}
	if c.open != nil {
		c.open(r)
	}
	before, counts := weightest.Heap(), r.counted(c)
	if c.fill != nil {
		c.fill(r)
	} else {
		require.NoError(t, r.peer.(wire.BatchWriter).WriteBatch(r.made))
	}
	require.Eventually(t, func() bool { return c.until(r) >= r.n || r.s.Err() != nil }, testkit.Patience, time.Millisecond)
	require.NoError(t, r.s.Err())
	held = (weightest.Heap() - before - r.apart) / c.n
	counted = (r.counted(c) - counts) / c.n
	runtime.KeepAlive(room)
	t.Logf("%.2f: %d bytes are counted for each, and %d held", float64(counted)/float64(held), counted, held)
	runtime.KeepAlive(r.keep)

	close(r.release)
	go r.drain() // ends with the Wire
	if c.end != nil {
		c.end(r)
	}
	gone := func() bool {
		st := r.s.Stats()
		return st.Inbound == limits.Amount{} && st.Outbound == limits.Amount{} && st.Holding+st.Waiting+st.Running+st.Receiving == 0
	}
	require.Eventually(t, gone, testkit.Patience, time.Millisecond, "%+v", r.s.Stats())
	return counted, held
}

// heldParams returns size bytes that are a CBOR byte string with a number in it.
func heldParams(i, size int) []byte {
	if size == 0 {
		return nil
	}
	content := make([]byte, size-1)
	switch {
	case size > 1<<16:
		content = content[:size-5]
	case size > 256:
		content = content[:size-3]
	case size > 24:
		content = content[:size-2]
	}
	if len(content) >= 8 {
		binary.BigEndian.PutUint64(content, uint64(i))
	}
	b, _ := codec.CBOR.Append(nil, content)
	return b
}

// withUnknown returns the frame f, which has no meta, with a meta that has an unknown string.
func withUnknown(f []byte, size int) []byte {
	f[0]++
	f = append(f, 0xa1, 0x18, 100)
	if size < 1<<16 {
		f = binary.BigEndian.AppendUint16(append(f, 0x59), uint16(size))
	} else {
		f = binary.BigEndian.AppendUint32(append(f, 0x5a), uint32(size))
	}
	return append(f, make([]byte, size)...)
}

func inboundMessages(r *heldRig) int { return r.s.Stats().Inbound.Messages }

func outboundMessages(r *heldRig) int { return r.s.Stats().Outbound.Messages }

// looks is an interceptor that reads the parameters.
func looks(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
	c.Params()
	return next(ctx, c)
}
