package parts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// partedRig is a session with the test as its peer. The wire holds nothing: a session has written
// the part that the peer reads next, or is writing it, and no frame behind that.
type partedRig struct {
	t     *testing.T
	p     *testkit.RawPeer
	dials bool // the node does
	node  *asterisque.Node
	s     *asterisque.Session

	other *pipe.Pipe // a stream that continues beside all
	plug  chan error // the outcome of a call that leaves before the message in parts
	pipe  uint64     // of the message in parts; known when a part was read
	parts int        // of the message, that were read
	given int        // how often it was given up
	never bool       // no part has left, and none will
	done  chan error // gets a token when a handler is about to return
}

// newPartedRig begins a session that the node dials or accepts.
func newPartedRig(t *testing.T, dials bool, opts ...asterisque.Option) *partedRig {
	r := &partedRig{t: t, dials: dials, node: asterisque.NewNode(opts...), plug: make(chan error, 1)}
	t.Cleanup(func() { r.node.Close() })
	a, b := testkit.Unbuffered()
	r.p = &testkit.RawPeer{T: t, W: a}
	t.Cleanup(func() { a.Close() })
	begin := r.node.Accept
	if dials {
		begin = r.node.Attach
	}
	sessions := make(chan *asterisque.Session, 1)
	go func() {
		s, err := begin(testkit.Background, b)
		require.NoError(t, err)
		sessions <- s
	}()
	h := testkit.Hello()
	h.Window, h.Opens, h.Overhead, h.NestedRoom, h.NestedCalls = 64<<10, 1<<20, 512, 1<<20, 64
	if dials {
		h.Session, h.Codecs = make([]byte, 16), r.p.Control().(message.Sync).Codecs[:1]
		r.p.Send(h)
	} else {
		r.p.Send(h)
		require.IsType(t, message.Sync{}, r.p.Control())
	}
	r.s = <-sessions
	var err error
	r.other, err = r.s.Open(testkit.Background, 8, nil)
	require.NoError(t, err)
	r.p.Open()
	synctest.Wait()
	return r
}

// own returns the nth pipe of the peer.
func (r *partedRig) own(n uint64) uint64 {
	if r.dials {
		return 2*n + 1
	}
	return 2 * n
}

// stuff sends a small call that the peer does not read yet, so that later messages wait behind it.
func (r *partedRig) stuff() {
	go func() {
		_, err := r.s.Call(testkit.Background, 9, nil)
		r.plug <- err
	}()
	synctest.Wait()
}

// read reads one frame, and answers a Ping.
func (r *partedRig) read() (f []byte, err error) {
	f, err = r.p.W.ReadFrame(message.MaxFrame)
	if c, bad := message.ParseControl(f); err == nil && bad == nil {
		if ping, ok := c.(message.Ping); ok {
			go r.say(message.Pong{N: ping.N}) // ends when it is read
		}
	}
	if part, bad := message.ParsePart(f); err == nil && bad == nil && (r.parts == 0 && !r.never || r.parts > 0 && part.Pipe == r.pipe) {
		if part.GivenUp {
			r.given++
		} else {
			r.pipe, r.parts = part.Pipe, r.parts+1
		}
	}
	return f, err
}

// readParts reads until n parts of the message have been received.
func (r *partedRig) readParts(n int) {
	r.t.Helper()
	for r.parts < n {
		_, err := r.read()
		require.NoError(r.t, err)
	}
	synctest.Wait()
}

// readOn reads until the wire ends, and answers each call but the message in parts.
func (r *partedRig) readOn() (over chan struct{}) {
	over = make(chan struct{})
	go func() {
		defer close(over)
		left := make(map[uint64]int) // bytes of other Opens in parts
		for {
			f, err := r.read()
			if err != nil {
				return
			}
			if m, err := message.ParseOpen(f); err == nil {
				r.answer(m.Pipe)
			}
			m, err := message.ParsePart(f)
			if err != nil || r.parts > 0 && m.Pipe == r.pipe || m.GivenUp {
				continue
			}
			if m.Whole > 0 {
				left[m.Pipe] = int(m.Whole)
			}
			if left[m.Pipe] -= len(m.Bytes); left[m.Pipe] == 0 {
				r.answer(m.Pipe)
			}
		}
	}()
	return over
}

func (r *partedRig) answer(id uint64) {
	go r.say(&message.Close{Pipe: id, Result: []byte{0x41, 1}}) // ends when it is read
}

// say sends a message unless the wire has ended.
func (r *partedRig) say(m interface{ AppendTo([]byte) []byte }) {
	r.p.W.WriteFrames([][]byte{m.AppendTo(nil)})
}

// outcome returns the error of a call, and fails the test if the call hangs.
func (r *partedRig) outcome(of <-chan error) error {
	r.t.Helper()
	select {
	case err := <-of:
		return err
	case <-time.After(2 * time.Minute): // of the bubble
		require.Fail(r.t, "a call hangs")
		return nil
	}
}

// partedCall is a kind of call with an Open of four parts.
type partedCall struct {
	stream bool
	made   func(ctx context.Context, s *asterisque.Session) error // until its end
}

var (
	partedTyped  = asterisque.Func[[]byte, []byte](5, "typed")
	partedStream = asterisque.Stream[[]byte, int, int, []byte](5, "typed stream")
)

func callParted(opts ...asterisque.CallOption) partedCall {
	return partedCall{made: func(ctx context.Context, s *asterisque.Session) error {
		_, err := s.Call(ctx, 5, make([]byte, testkit.PartedLen), opts...)
		return err
	}}
}

// openParted opens a stream, and sends with f.
func openParted(f func(p *pipe.Pipe)) partedCall {
	return partedCall{stream: true, made: func(ctx context.Context, s *asterisque.Session) error {
		p, err := s.Open(ctx, 5, make([]byte, testkit.PartedLen))
		if err != nil {
			return err
		}
		f(p)
		_, err = p.Result(testkit.Background)
		return err
	}}
}

// partedCalls are the kinds of calls that a node makes on a session.
var partedCalls = map[string]partedCall{
	"unary":               callParted(),
	"intercepted":         callParted(asterisque.WithCallInterceptors(testkit.Passes)),
	"with a time to live": callParted(asterisque.WithTTL(time.Hour)),
	"with a key":          callParted(asterisque.WithIdempotencyKey([]byte("a key of some bytes"))),
	"urgent":              callParted(asterisque.WithPriority(3)),
	"typed": {made: func(ctx context.Context, s *asterisque.Session) error {
		_, err := partedTyped.Call(ctx, s, make([]byte, testkit.PartedLen))
		return err
	}},
	"stream": openParted(func(*pipe.Pipe) {}),
	"stream with Blocks behind": openParted(func(p *pipe.Pipe) {
		p.Post(make([]byte, 100))
		p.Post(make([]byte, testkit.PartedLen), pipe.WithLoss(127))
		p.Post(make([]byte, 100), pipe.WithTTL(time.Second))
		p.CloseSend()
	}),
	"stream that is stopped": openParted((*pipe.Pipe).Stop),
	"typed stream": {stream: true, made: func(ctx context.Context, s *asterisque.Session) error {
		call, err := partedStream.Open(ctx, s, make([]byte, testkit.PartedLen))
		if err != nil {
			return err
		}
		_, err = call.Result(testkit.Background)
		return err
	}},
}

// partedEnd is one way to end a call, or all calls of a session.
type partedEnd struct {
	do    func(r *partedRig, cancel context.CancelFunc)
	local bool // the caller ends it
	over  bool // the session ends

	drains bool // the peer takes no more calls
}

func closedWith(code codec.Code, ran codec.Ran, before ...message.Control) func(*partedRig, context.CancelFunc) {
	return func(r *partedRig, _ context.CancelFunc) {
		for _, c := range before {
			r.say(c)
		}
		r.say(&message.Close{Pipe: r.pipe, Abort: &codec.Abort{Code: code, Message: "not now", Ran: ran}})
	}
}

// The partedEnds that need a pipe apply only after the peer has read a part.
var partedEnds = map[string]partedEnd{
	"refused":             {do: closedWith(codec.Overloaded, codec.Refused)},
	"failed":              {do: closedWith(codec.Overloaded, codec.MaybeRan)},
	"refused by a Drain":  {drains: true, do: closedWith(codec.Unavailable, codec.Refused, message.Drain{Last: 1 << 20})},
	"without a function":  {do: closedWith(codec.NoFunction, codec.Refused)},
	"closed by the peer":  {over: true, do: func(r *partedRig, _ context.CancelFunc) { r.say(message.SessionClose{Code: codec.SessionClosed}) }},
	"cut":                 {over: true, do: func(r *partedRig, _ context.CancelFunc) { r.p.W.Close() }},
	"a violation":         {over: true, do: func(r *partedRig, _ context.CancelFunc) { r.say(&message.Close{Pipe: 1 << 40}) }},
	"canceled":            {local: true, do: func(_ *partedRig, cancel context.CancelFunc) { cancel() }},
	"closed":              {over: true, do: func(r *partedRig, _ context.CancelFunc) { go r.s.Close() }},
	"shut down in vain":   {over: true, do: func(r *partedRig, _ context.CancelFunc) { shutDownFor(r.s, time.Second) }},
	"closed with nodes":   {over: true, do: func(r *partedRig, _ context.CancelFunc) { go r.node.Close() }},
	"beyond a hard limit": {over: true, do: func(r *partedRig, _ context.CancelFunc) { r.exceedHard() }},
}

func shutDownFor(s *asterisque.Session, d time.Duration) {
	ctx, cancel := context.WithTimeout(testkit.Background, d)
	defer cancel()
	s.Shutdown(ctx)
}

// exceedHard posts Blocks of a stream until the session reaches its outbound hard limit.
func (r *partedRig) exceedHard() {
	tight := limits.Limits{Soft: limits.Amount{Bytes: 1 << 10}, Hard: limits.Amount{Bytes: 8 << 10}}
	require.NoError(r.t, r.s.SetLimits(r.s.Limits(asterisque.Inbound), tight))
	for err := error(nil); err == nil; {
		_, err = r.other.Post(make([]byte, 1<<10))
	}
	require.ErrorIs(r.t, r.s.Err(), asterisque.ErrHardLimit)
}

// TestParts_OpenEnds ends each kind of call in each way at each point of its Open: before the peer
// has read a frame, and after each number of parts. The call ends with the error that its caller
// can act on, nothing of it stays behind, and the session continues.
func TestParts_OpenEnds(t *testing.T) {
	n := 0
	for _, dials := range []bool{true, false} {
		for _, kind := range slices.Sorted(maps.Keys(partedCalls)) {
			for _, end := range slices.Sorted(maps.Keys(partedEnds)) {
				for read := -1; read <= testkit.FourParts; read++ {
					e := partedEnds[end]
					if read < 1 && !e.local && !e.over {
						continue // the peer does not know the pipe
					}
					if n++; !testkit.Sampled(n) {
						continue
					}
					name := fmt.Sprintf("dials %v/%s/%s/%d", dials, kind, end, read)
					synctest.Test(t, func(t *testing.T) {
						r := newPartedRig(t, dials)
						defer func() {
							if t.Failed() {
								t.Log(name)
							}
						}()
						r.endOpen(partedCalls[kind], e, read)
					})
				}
			}
		}
	}
}

// endOpen ends a call after the peer has read that many parts of its Open; with -1, the peer has
// not read anything.
func (r *partedRig) endOpen(call partedCall, e partedEnd, read int) {
	departed, err := r.end(call.made, e, read)
	require.Error(r.t, err)
	switch {
	case e.local && call.stream: // the caller knows what it did
	case departed < testkit.FourParts:
		require.True(r.t, asterisque.Repeatable(err), "%d parts have left: %v", departed, err)
	case e.local || e.over:
		require.False(r.t, asterisque.Repeatable(err), "all parts have left: %v", err)
	}
}

// end makes made send a message in parts, and applies e after the given number of parts. It returns
// how many had left then, and the outcome of made. The session must have ended, or continue.
func (r *partedRig) end(made func(context.Context, *asterisque.Session) error, e partedEnd, read int) (departed int, err error) {
	t := r.t
	r.stuff()
	ctx, cancel := context.WithCancel(testkit.Background)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- made(ctx, r.s) }()
	synctest.Wait()
	if read >= 0 {
		f, err := r.read()
		require.NoError(t, err)
		m, err := message.ParseOpen(f)
		require.NoError(t, err)
		require.EqualValues(t, 9, m.Function)
		r.answer(m.Pipe)
		r.readParts(read)
		departed = min(read+1, testkit.FourParts) // one is being written
	}
	e.do(r, cancel)
	synctest.Wait()
	r.never = departed == 0
	over := r.readOn()
	err = r.outcome(done)
	if e.over {
		<-r.s.Done()
	} else {
		require.NoError(t, r.outcome(r.plug))
		r.goesOn(e, read+1)
	}
	r.s.Close()
	<-over
	require.Zero(t, r.s.Stats().Pipes)
	return departed, err
}

// goesOn requires that the session continues and sends no more of the message than necessary.
func (r *partedRig) goesOn(e partedEnd, departed int) {
	synctest.Wait()
	require.LessOrEqual(r.t, r.parts, departed, "parts that follow the end of their pipe")
	given := 0
	if e.local && departed > 0 && departed < testkit.FourParts {
		given = 1
	}
	require.Equal(r.t, given, r.given)
	if !e.drains {
		next := make(chan error, 1)
		go func() { next <- callParted().made(testkit.Background, r.s) }()
		require.NoError(r.t, r.outcome(next))
	}
	require.NoError(r.t, r.s.Err())
	r.other.Abort(nil)
	fakeclock.Sleep(time.Minute)
	require.Empty(r.t, testkit.LeftOf(r.s.Stats()))
}
