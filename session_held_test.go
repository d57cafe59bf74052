package asterisque_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// heldRig is a session of which one kind of messages is made to wait, and its other side, whose
// bytes were made before.
type heldRig struct {
	t       *testing.T
	n       int
	node    *asterisque.Node
	s       *asterisque.Session
	peer    wire.Wire
	release chan struct{} // closed when handlers may return
	made    []byte        // what the peer sends
	first   []byte        // what it sends before anything is measured
	apart   int           // bytes that are the application's
	keep    []any         // what the application holds on to
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

// add adds a frame to what the peer sends.
func (r *heldRig) add(m interface{ AppendTo([]byte) []byte }) { r.addFrame(m.AppendTo(nil)) }

func (r *heldRig) addFrame(f []byte) {
	if free := cap(r.made) - len(r.made); free < 4+len(f) {
		r.made = slices.Grow(r.made, max(4+len(f), len(r.made))) // append copies far more often
	}
	r.made = append(binary.BigEndian.AppendUint32(r.made, uint32(len(f))), f...)
}

// before lets what was added until now be sent before anything is measured.
func (r *heldRig) before() { r.first, r.made = append(r.first, r.made...), nil }

// open adds an Open with parameters that are size bytes of CBOR.
func (r *heldRig) open(i int, function uint16, size int, meta message.Meta) {
	r.add(&message.Open{Pipe: uint64(2 * i), Function: function, Params: heldParams(i, size), Meta: meta})
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

// withUnknown returns the frame f, which has no meta, with one that has an unknown string.
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

// heldCase makes one kind of messages wait.
type heldCase struct {
	name  string
	n     int
	opts  []asterisque.Option
	stuck bool               // the peer reads nothing, and neither does the Wire hold much
	add   func(*heldRig)     // adds what the peer sends
	open  func(*heldRig)     // is called before anything is measured
	fill  func(*heldRig)     // is called instead of sending
	until func(*heldRig) int // how many wait; n are awaited
	once  bool               // what is remembered counts as well
	end   func(*heldRig)     // is called at the end
}

func inboundMessages(r *heldRig) int  { return r.s.Stats().Inbound.Messages }
func outboundMessages(r *heldRig) int { return r.s.Stats().Outbound.Messages }

func heldCases() (cases []heldCase) {
	noWindow := asterisque.WithLimits(asterisque.Limits{Window: -1})
	somebody := asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: "somebody"}, nil
	}})
	one := asterisque.WithWorkers(asterisque.Workers{Session: 1})
	waiting := func(name string, n int, function uint16, size int, meta func(i int) message.Meta, opts ...asterisque.Option) {
		cases = append(cases, heldCase{name: name, n: n, opts: append(opts, one), until: inboundMessages, once: true, add: func(r *heldRig) {
			r.open(0, waitUnary, 8, message.Meta{})
			r.before()
			for i := range n {
				var m message.Meta
				if meta != nil {
					m = meta(i)
				}
				r.open(i+1, function, size, m)
			}
		}})
	}
	stream := func(int) message.Meta { return message.Meta{Stream: true} }
	waiting("unary, no params", 4_000, waitUnary, 0, nil)
	waiting("unary, no params, a table that is just full", 8_190, waitUnary, 0, nil)
	waiting("unary, no params, a table that is half full", 8_300, waitUnary, 0, nil)
	waiting("unary, 64 B", 4_000, waitUnary, 64, nil)
	waiting("unary, 65 B", 4_000, waitUnary, 65, nil)
	waiting("unary, 200 B", 4_000, waitUnary, 200, nil)
	waiting("unary, 6000 B", 1_000, waitUnary, 6000, nil)
	waiting("unary, 40 KiB", 200, waitUnary, 40<<10, nil)
	waiting("stream, no params", 4_000, waitStream, 0, stream)
	waiting("stream, 200 B", 4_000, waitStream, 200, stream)
	waiting("stream, borrowed, 9000 B", 500, waitBorrowed, 9000, stream)
	waiting("function with key, one key", 4_000, waitKeyed, 9, func(int) message.Meta { return message.Meta{} })
	cases[len(cases)-1].add = func(r *heldRig) {
		r.open(0, waitUnary, 8, message.Meta{})
		r.before()
		for i := range 4_000 {
			r.add(&message.Open{Pipe: uint64(2*i + 2), Function: waitKeyed, Params: heldParams(7, 9)})
		}
	}
	waiting("function with key, as many keys", 4_000, waitKeyed, 9, nil)
	waiting("function with key, as many keys, 7000", 7_000, waitKeyed, 9, nil)
	waiting("durable", 4_000, waitUnary, 8, func(i int) message.Meta {
		return message.Meta{Key: binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i))}
	})
	waiting("durable, long key", 7_000, waitUnary, 8, func(i int) message.Meta {
		return message.Meta{Key: binary.BigEndian.AppendUint64(make([]byte, 56), uint64(i))}
	}, somebody)
	waiting("traced, 300 B", 4_000, waitUnary, 8, func(int) message.Meta { return message.Meta{Trace: make([]byte, 300)} }, asterisque.WithTracer(new(quietTracer)))
	waiting("trace for nobody, 300 B", 4_000, waitUnary, 8, func(int) message.Meta { return message.Meta{Trace: make([]byte, 300)} })
	waiting("unknown meta, 2000 B", 1_000, waitUnary, 8, nil)
	cases[len(cases)-1].add = func(r *heldRig) {
		r.open(0, waitUnary, 8, message.Meta{})
		r.before()
		for i := range 1_000 {
			o := message.Open{Pipe: uint64(2*i + 2), Function: waitUnary, Params: heldParams(i, 9)}
			r.addFrame(withUnknown(o.AppendTo(nil), 2000))
		}
	}
	waiting("unknown meta, 256 KiB, borrowed", 100, waitBorrowed, 8<<10, nil)
	cases[len(cases)-1].add = func(r *heldRig) {
		r.open(0, waitUnary, 8, message.Meta{})
		r.before()
		for i := range 100 {
			o := message.Open{Pipe: uint64(2*i + 2), Function: waitBorrowed, Params: heldParams(i, 8<<10)}
			r.addFrame(withUnknown(o.AppendTo(nil), 256<<10))
		}
	}

	running := func(name string, n int, function uint16, size int) {
		cases = append(cases, heldCase{
			name: name, n: n, opts: []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: n + 1})},
			until: func(r *heldRig) int { return r.s.Stats().Running },
			open: func(r *heldRig) {
				goroutine() // for workers, which are used again
				r.apart = n * worker
			},
			add: func(r *heldRig) {
				for i := range n {
					r.open(i, function, size, message.Meta{Stream: true})
				}
			},
		})
	}
	running("running, no params", 1000, waitStream, 0)
	running("running, 200 B", 1000, waitStream, 200)
	running("running, 6000 B", 300, waitStream, 6000)
	running("running, 64 KiB", 100, waitStream, 64<<10)
	running("running, borrowed, 64 KiB", 100, waitBorrowed, 64<<10)
	running("running, borrowed, 9000 B", 300, waitBorrowed, 9000)

	blocks := func(name string, pipes, each, size int, frame func([]byte) []byte) {
		cases = append(cases, heldCase{
			name: "inbound Blocks, " + name, n: pipes * each, opts: []asterisque.Option{noWindow, asterisque.WithWorkers(asterisque.Workers{Session: pipes})}, until: inboundMessages,
			add: func(r *heldRig) {
				for i := range pipes {
					r.open(i, waitStream, 0, message.Meta{Stream: true})
				}
				r.before()
				b := message.Block{Payload: make([]byte, size)}
				for range each {
					for i := range pipes {
						b.Pipe = uint64(2 * i)
						if f := b.AppendTo(nil); frame == nil {
							r.addFrame(f)
						} else {
							r.addFrame(frame(f))
						}
					}
				}
			},
			open: func(r *heldRig) {
				require.Eventually(r.t, func() bool { return r.s.Stats().Running == pipes }, 10*time.Second, time.Millisecond)
			},
		})
	}
	blocks("1 B", 1, 20_000, 1, nil)
	blocks("1 B, 60 a pipe", 500, 60, 1, nil)
	blocks("1 B, 32 a pipe", 500, 32, 1, nil)
	blocks("1 B, 33 a pipe", 500, 33, 1, nil)
	blocks("1 B, 5 a pipe", 1000, 5, 1, nil)
	blocks("1 B, 1 a pipe", 1000, 1, 1, nil)
	blocks("100 B", 10, 1000, 100, nil)
	blocks("1 KiB", 10, 500, 1<<10, nil)
	blocks("8 KiB", 10, 50, 8<<10, nil)
	blocks("20 KiB", 10, 30, 20<<10, nil)
	blocks("32 KiB", 10, 30, 32<<10, nil)
	blocks("48 KiB", 10, 30, 48<<10, nil)
	blocks("63 KiB", 10, 30, 63<<10, nil)
	blocks("1 MiB", 10, 5, 1<<20, nil)
	blocks("8 KiB with 512 KiB of unknown meta", 10, 10, 8<<10, func(f []byte) []byte { return withUnknown(f, 512<<10) })

	out := func(name string, pipes, each, size int) {
		cases = append(cases, heldCase{
			name: "outbound Blocks, " + name, n: pipes * each, stuck: true, until: outboundMessages,
			open: func(r *heldRig) {
				for range pipes {
					p, err := r.s.Open(background, 1, nil)
					require.NoError(r.t, err)
					r.keep = append(r.keep, p)
				}
				require.Eventually(r.t, func() bool { return outboundMessages(r) == 0 }, 10*time.Second, time.Millisecond)
				p := r.keep[0].(*pipe.Pipe)
				for range 3 { // the Wire is full
					p.Post(make([]byte, 80<<10))
				}
				r.n += outboundMessages(r)
			},
			fill: func(r *heldRig) {
				payload := make([]byte, size)
				for range each {
					for _, p := range r.keep {
						if _, err := p.(*pipe.Pipe).Post(payload); err != nil {
							r.t.Fatal(err)
						}
					}
				}
			},
			end: func(r *heldRig) {
				for _, p := range r.keep {
					p.(*pipe.Pipe).Abort(nil)
				}
			},
		})
	}
	out("1 B", 1, 20_000, 1)
	out("1 B, 10 a pipe", 500, 10, 1)
	out("1 B, 1 a pipe", 1000, 1, 1)
	out("100 B", 10, 1000, 100)
	out("1 KiB", 10, 500, 1<<10)
	out("8 KiB", 10, 200, 8<<10)
	out("48 KiB", 10, 100, 48<<10)
	out("63 KiB", 10, 100, 63<<10)
	out("1 MiB", 10, 5, 1<<20-200)

	answers := func(name string, n int, function uint16, meta func(int) message.Meta, opts ...asterisque.Option) {
		cases = append(cases, heldCase{
			name: name, n: n, stuck: true, opts: append([]asterisque.Option{noWindow, asterisque.WithWorkers(asterisque.Workers{Session: 2})}, opts...), once: true,
			until: func(r *heldRig) int {
				st := r.s.Stats()
				return st.Outbound.Messages + st.Parked
			},
			open: func(r *heldRig) {
				goroutine() // for workers, which are used again
				p, err := r.s.Open(background, 1, nil)
				require.NoError(r.t, err)
				r.keep = append(r.keep, p)
				require.Eventually(r.t, func() bool { return outboundMessages(r) == 0 }, 10*time.Second, time.Millisecond)
				for range 3 { // the Wire is full
					p.Post(make([]byte, 80<<10))
				}
				r.n += outboundMessages(r)
			},
			add: func(r *heldRig) {
				for i := range n {
					var m message.Meta
					if meta != nil {
						m = meta(i)
					}
					r.open(i, function, 9, m)
				}
			},
			end: func(r *heldRig) { r.keep[0].(*pipe.Pipe).Abort(nil) },
		})
	}
	answers("results, 10 B", 5000, giveSmall, nil)
	answers("results, 10 B, of streams", 5000, giveStream, stream)
	answers("results, 6000 B", 500, give6000, nil)
	answers("results, 100 KiB", 60, give100K, nil)
	answers("errors, long message", 2000, fails, nil)
	answers("errors of streams, 100 B", 2000, failsStream, stream)
	answers("errors, 256 KiB of detail", 50, failsDetail, nil)
	answers("refused: no function", 3000, 999, nil)
	little := asterisque.WithLimits(asterisque.Limits{Outbound: bytesOf(100<<10, 1<<30)})
	window, many := asterisque.WithLimits(asterisque.Limits{Window: 256 << 10}), asterisque.WithWorkers(asterisque.Workers{Session: 6000})
	answers("parked results, 10 B", 5000, giveSmall, nil, little, window, many)
	answers("parked results, 6000 B", 500, give6000, nil, little, window, many)
	answers("parked results, 100 KiB", 60, give100K, nil, little, window, many)
	answers("parked errors, 256 KiB of detail", 50, failsDetail, nil, little, window, many)
	answers("parked refusals", 3000, 999, nil, little, window, many)

	remembered := func(name string, n int, function uint16) {
		cases = append(cases, heldCase{
			name: "remembered, " + name, n: n, once: true, opts: []asterisque.Option{noWindow, asterisque.WithWorkers(asterisque.Workers{Session: 2}), asterisque.WithDurableAnswers(asterisque.DurableAnswers{Share: 1})},
			until: func(r *heldRig) int {
				if st := r.s.Stats(); st.Served < uint64(n) || st.Running+st.Waiting+st.Outbound.Messages > 0 {
					return 0
				}
				return n
			},
			open: func(r *heldRig) { go r.drain() },
			add: func(r *heldRig) {
				for i := range n {
					r.open(i, function, 9, message.Meta{Key: binary.BigEndian.AppendUint64(make([]byte, 8), uint64(i))})
				}
			},
		})
	}
	remembered("10 B", 5000, giveSmall)
	remembered("10 B, a map that is just full", 7100, giveSmall)
	remembered("100 KiB", 60, give100K)
	remembered("long message", 500, fails)
	remembered("256 KiB of detail", 50, failsDetail)

	left := func(name string, pipes, each, size int) {
		cases = append(cases, heldCase{
			name: "left over, " + name, n: pipes * each, opts: []asterisque.Option{noWindow}, until: inboundMessages,
			open: func(r *heldRig) {
				for range pipes {
					p, err := r.s.Open(background, 1, nil)
					require.NoError(r.t, err)
					r.keep = append(r.keep, p)
				}
			},
			add: func(r *heldRig) {
				for i := range pipes {
					for range each {
						r.add(&message.Block{Pipe: uint64(2*i + 1), Payload: make([]byte, size)})
					}
					r.add(&message.Close{Pipe: uint64(2*i + 1)})
				}
			},
			end: func(r *heldRig) {
				for _, p := range r.keep {
					for {
						if _, err := p.(*pipe.Pipe).Recv(background); err == io.EOF {
							break
						}
					}
				}
			},
		})
	}
	left("1 KiB", 100, 30, 1<<10)
	left("1 KiB, 1 a pipe", 500, 1, 1<<10)
	left("48 KiB", 100, 5, 48<<10)

	half := func(name string, size, sent int) {
		cases = append(cases, heldCase{
			name: "half received, " + name, n: 1,
			until: func(r *heldRig) int { return min(1, r.s.Stats().Receiving/sent) },
			add: func(r *heldRig) {
				r.open(0, waitUnary, size, message.Meta{})
				r.made = r.made[:sent]
			},
			end: func(r *heldRig) { r.peer.Close() },
		})
	}
	half("3 of 4 MiB", 4<<20-100, 3<<20)
	half("300 KiB of 1 MiB", 1<<20, 300<<10)
	return cases
}

// worker is how many bytes the node has for each worker, its goroutine apart.
const worker = 128

// quietTracer is a Tracer that traces nothing.
type quietTracer struct{}

func (*quietTracer) Call(context.Context, *asterisque.Session, uint16, string) ([]byte, func(error)) {
	return nil, func(error) {}
}

func (*quietTracer) Serve(ctx context.Context, _ *asterisque.Session, _ uint16, _ string, _ []byte) (context.Context, func(error)) {
	return ctx, func(error) {}
}

// begin connects both sides.
func (r *heldRig) begin(c *heldCase) {
	opts := []asterisque.Option{
		asterisque.WithService(r.service()), asterisque.WithLimits(asterisque.Limits{Inbound: bytesOf(1<<29, 1<<30), Outbound: bytesOf(1<<29, 1<<30)}),
		asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: time.Hour, Calls: -1, Bytes: -1}),
	}
	r.node = asterisque.NewNode(append(opts, c.opts...)...)
	var there wire.Wire
	if c.stuck {
		r.peer, there = wire.Pipe()
	} else {
		a, b := tcpPair(r.t)
		r.peer, there = wire.FromConn(a), wire.FromConn(b)
	}
	r.t.Cleanup(func() { r.peer.Close(); r.node.Close() })
	sessions := make(chan *asterisque.Session, 1)
	go func() {
		s, err := r.node.Accept(background, there)
		if err != nil {
			r.t.Error(err)
		}
		sessions <- s
	}()
	hi := hello()
	hi.MaxMessage = 4 << 20
	require.NoError(r.t, r.peer.WriteFrames([][]byte{hi.AppendTo(nil)}))
	_, err := r.peer.ReadFrame(1 << 20)
	require.NoError(r.t, err)
	r.s = <-sessions
	require.NotNil(r.t, r.s)
}

// drain reads all that comes.
func (r *heldRig) drain() {
	for {
		if _, err := r.peer.ReadFrame(8 << 20); err != nil {
			return
		}
	}
}

// counted returns the bytes that the statistics count.
func (r *heldRig) counted(c *heldCase) int {
	st := r.s.Stats()
	n := st.Inbound.Bytes + st.Outbound.Bytes + st.Holding + st.Receiving
	if c.once {
		n += asterisque.Remembered(r.node)
	}
	return n
}

// TestWhatIsCountedIsHeld makes one kind of messages after the other wait, and compares what the
// statistics count with what the heap grows by. The heap also grows by what is kept for later, such
// as goroutines that have ended; it does so once, and not when the same is measured again.
func TestWhatIsCountedIsHeld(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector holds more")
	}
	for _, c := range heldCases() {
		t.Run(c.name, func(t *testing.T) {
			var ratio float64
			for range 3 {
				if ratio = c.measure(t); ratio >= 0.9 && ratio <= 1.1 {
					return
				}
			}
			t.Errorf("%.2f: counted is not held", ratio)
		})
	}
}

// measure returns how many bytes are counted for each that is held, while the messages wait that c
// makes.
func (c *heldCase) measure(t *testing.T) float64 {
	r := &heldRig{t: t, n: c.n, release: make(chan struct{})}
	r.begin(c)
	if c.add != nil {
		c.add(r)
	}
	if len(r.first) > 0 {
		require.NoError(t, r.peer.(wire.BatchWriter).WriteBatch(r.first))
		r.first = nil
		require.Eventually(t, func() bool { return r.s.Stats().Running > 0 }, 10*time.Second, time.Millisecond)
	}
	if c.open != nil {
		c.open(r)
	}
	before, counted := heap(), r.counted(c)
	if c.fill != nil {
		c.fill(r)
	} else {
		require.NoError(t, r.peer.(wire.BatchWriter).WriteBatch(r.made))
	}
	require.Eventually(t, func() bool { return c.until(r) >= r.n || r.s.Err() != nil }, 20*time.Second, time.Millisecond)
	require.NoError(t, r.s.Err())
	held := heap() - before - r.apart
	counted = r.counted(c) - counted
	runtime.KeepAlive(r.made)
	t.Logf("%.2f: %d bytes are counted for each, and %d held", float64(counted)/float64(held), counted/c.n, held/c.n)
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
	require.Eventually(t, gone, 20*time.Second, 5*time.Millisecond, "%+v", r.s.Stats())
	return float64(counted) / float64(held)
}
