package piping_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// side is one side of a session in which the test moves every message: sent messages wait for
// depart, and departed ones for deliver.
type side struct {
	t     testing.TB
	room  *flow.Budget
	terms piping.Terms
	other *side

	mu        sync.Mutex
	wire      []func() // departed messages, in order
	announced []*end   // ends with Controls
	reserved  int      // free bytes in the room for running calls
	messages  int      // received and not yet taken
	bytes     int
	overrun   int // Blocks beyond the window
	judge     func() bool
	crossing  []*crossing // calls of Send that wait for room of the session
	cross     func() bool // whether the next call of Send waits; nil: no
}

// crossing is a call of Send that waits for the test.
type crossing struct {
	end *end
	on  chan error
}

// errDrop makes a call of Send drop its Block and return no error.
var errDrop = errors.New("dropped")

// end is one end of a pipe.
type end struct {
	pipe.Pipe
	s     *side
	other *end

	mu    sync.Mutex
	queue []any // queued messages: piping.Outgoing, abandon, "end", "stop", closing
	ended bool  // no Block may be put any more
	over  bool  // nothing may be put any more
	sent  uint32
	rest  int // unsent bytes of the Block of which a piece has departed
	skips int // Skips that have departed
	ctx   context.Context
}

// openContext returns the context of Open.
func (e *end) openContext() context.Context {
	if e.ctx == nil {
		return background
	}
	return e.ctx
}

// port returns e as its pipe uses it.
func (e *end) port() *endPort { return (*endPort)(e) }

// endPort is an end in the view of its pipe.
type endPort end

type abandon struct{ whole int }

type skip struct{ stays uint64 }

type closing struct {
	result []byte
	abort  *codec.Abort
}

func (e *end) end() *piping.End { return (*piping.End)(&e.Pipe) }

// put queues m, unless m must not follow.
func (e *end) put(m any) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, isBlock := m.(piping.Outgoing); e.over || isBlock && e.ended {
		return pipe.ErrEnded
	}
	e.ended = e.ended || m == any("end")
	e.queue = append(e.queue, m)
	return nil
}

func (e *endPort) Send(ctx context.Context, b piping.Outgoing) error {
	e.s.mu.Lock()
	if e.s.cross != nil && e.s.cross() {
		c := &crossing{(*end)(e), make(chan error, 1)}
		e.s.crossing = append(e.s.crossing, c)
		e.s.mu.Unlock()
		select {
		case err := <-c.on:
			if err == errDrop {
				(*end)(e).end().Dropped(len(b.Payload))
				return nil
			}
			if err != nil {
				return err
			}
		case <-ctx.Done():
			e.s.mu.Lock()
			e.s.crossing = slices.DeleteFunc(e.s.crossing, func(x *crossing) bool { return x == c })
			e.s.mu.Unlock()
			return codec.AbortOf(ctx.Err())
		}
	} else {
		e.s.mu.Unlock()
	}
	return (*end)(e).put(b)
}

func (e *endPort) Post(b piping.Outgoing) (limits.State, error) {
	(*end)(e).put(b)
	return limits.Ready, nil
}

func (e *endPort) Thin(b *piping.Outgoing) bool {
	b.Loss = 0
	return e.s.judge != nil && e.s.judge()
}

func (e *endPort) Expire(*piping.Outgoing) {}

func (e *endPort) CloseSend() error { return (*end)(e).put("end") }
func (e *endPort) Stop(bool)        { (*end)(e).put("stop") }
func (e *endPort) Abandon(n int)    { (*end)(e).put(abandon{n}) }
func (e *endPort) Watch()           {}
func (e *endPort) Skip(n uint64)    { (*end)(e).put(skip{n}) }
func (e *endPort) Outlive(f func()) func() bool {
	return context.AfterFunc((*end)(e).openContext(), f)
}
func (e *endPort) MaxBlock() int { return 1 << 20 }

func (e *endPort) Owns(context.Context) bool   { return false }
func (e *endPort) Misbehaved(any) *codec.Abort { return codec.ErrPanicked }

func (e *endPort) Announce() {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	require.False(e.s.t, slices.Contains(e.s.announced, (*end)(e)), "once until it is asked")
	e.s.announced = append(e.s.announced, (*end)(e))
}

// Taken implements piping.Ledger.
func (s *side) Taken(messages, bytes int) {
	s.count(-messages, -bytes)
}

// Reserve implements piping.Ledger.
func (s *side) Reserve(bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if bytes > s.reserved {
		return false
	}
	s.reserved -= bytes
	return true
}

func (e *endPort) Close(result []byte, abort *codec.Abort) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	if abort != nil {
		e.queue = nil
	}
	e.queue, e.over = append(e.queue, closing{result, abort}), true
}

// depart sends the next message of e, and reports whether there was one.
func (e *end) depart() bool {
	e.mu.Lock()
	if len(e.queue) == 0 {
		e.mu.Unlock()
		return false
	}
	m := e.queue[0]
	e.queue = e.queue[1:]
	to := e.other
	switch m := m.(type) {
	case piping.Outgoing:
		if m.Offset == 0 {
			require.Zero(e.s.t, e.rest, "a Block begins after the end of another one")
			e.sent += uint32(e.s.terms.PeerOverhead)
			e.rest = m.Whole
		} else {
			require.Equal(e.s.t, m.Whole-m.Offset, e.rest, "a piece continues its Block")
		}
		e.sent += uint32(len(m.Payload))
		e.rest -= min(len(m.Payload), e.rest)
	case abandon:
		e.sent += uint32(e.rest)
		e.rest = 0
	case skip:
		total, ok := e.end().Skipping(e.sent, m.stays)
		if ok {
			e.sent = uint32(total)
			e.skips++
			e.s.send(func() { require.True(e.s.t, to.end().SkipArrived(total), "a Skip within the granted credit") })
		}
		e.mu.Unlock()
		return true
	}
	e.mu.Unlock()
	e.s.send(func() { to.arrive(m) })
	return true
}

// arrive processes a message of the peer.
func (e *end) arrive(m any) {
	switch m := m.(type) {
	case piping.Outgoing:
		if m.Whole > 0 && !e.part(m) {
			return
		}
		b := piping.NewBlock(m.Payload, m.Memory, 0, m.Expires)
		if m.Whole > 0 {
			b = sized(m.Whole)
		}
		e.s.count(1, b.Held())
		switch v := e.end().BlockArrived(b); v {
		case piping.Accepted:
			return
		case piping.Late:
		case piping.Overrun:
			e.s.mu.Lock()
			e.s.overrun++
			e.s.mu.Unlock()
			e.Abort(codec.ErrWindow)
		default:
			e.s.t.Errorf("a Block after the end")
		}
		e.s.count(-1, -b.Held())
	case abandon:
		e.end().BlockAbandoned()
	case closing:
		if m.abort != nil {
			e.end().CloseArrived(nil, m.abort)
		} else {
			e.end().CloseArrived(m.result, nil)
		}
		e.mu.Lock()
		e.queue, e.over = nil, true
		e.mu.Unlock()
	case string:
		if m == "end" {
			e.end().EndArrived(0)
		} else {
			e.end().StopArrived()
		}
	}
}

// part processes a part of a Block, and reports whether the Block is complete.
func (e *end) part(m piping.Outgoing) (complete bool) {
	v := piping.Accepted
	if m.Offset == 0 {
		v = e.end().BlockBegins(m.Whole)
	}
	got := m.Offset + len(m.Payload)
	if v == piping.Accepted {
		_, v = e.end().PartArrived(got)
	}
	if v == piping.Overrun {
		e.s.mu.Lock()
		e.s.overrun++
		e.s.mu.Unlock()
		e.Abort(codec.ErrWindow)
	}
	return v == piping.Accepted && got == m.Whole
}

func (s *side) count(messages, bytes int) {
	s.mu.Lock()
	s.messages += messages
	s.bytes += bytes
	assert.GreaterOrEqual(s.t, s.messages, 0, "a counter of a session must not become negative")
	assert.GreaterOrEqual(s.t, s.bytes, 0, "likewise")
	s.mu.Unlock()
}

func (s *side) send(f func()) {
	s.mu.Lock()
	s.wire = append(s.wire, f)
	s.mu.Unlock()
}

// tell sends the announced Controls, and reports whether there were any.
func (s *side) tell() bool {
	s.mu.Lock()
	list := s.announced
	s.announced = nil
	s.mu.Unlock()
	for _, e := range list {
		e.end().Controls(0, func(c message.Control) {
			s.send(func() {
				e.other.end().CreditArrived(c.(message.Credit).Limit)
			})
		})
	}
	return len(list) > 0
}

// deliver delivers the next message to the other side, and reports whether there was one.
func (s *side) deliver() bool {
	s.mu.Lock()
	if len(s.wire) == 0 {
		s.mu.Unlock()
		return false
	}
	f := s.wire[0]
	s.wire = s.wire[1:]
	s.mu.Unlock()
	f()
	return true
}

// newSides returns two sides that divide their room by plan.
func newSides(t testing.TB, plan flow.Plan, largest uint64) (a, b *side) {
	sides := [2]*side{}
	for i := range sides {
		s := &side{t: t, room: flow.NewBudget(&plan)}
		s.terms = piping.Terms{
			Budget: s.room, Overhead: overhead, Early: early, Usual: uint32(largest), PeerOverhead: overhead, PeerEarly: early,
			Ledger: s,
		}
		sides[i] = s
	}
	sides[0].other, sides[1].other = sides[1], sides[0]
	return sides[0], sides[1]
}

// open opens a stream from s, or returns nil if s has no window for it. Its handler has not begun.
func (s *side) open(priority int8) (caller, callee *end) {
	claim := &flow.Waiter{Granted: func(bool) {}}
	if !s.room.Acquire(flow.Made, claim) {
		s.room.Withdraw(claim)
		return nil, nil
	}
	caller, callee = &end{s: s}, &end{s: s.other}
	caller.other, callee.other = callee, caller
	var h flow.Window
	s.room.Opened(claim, &h)
	caller.end().Init(piping.Config{Port: caller.port(), Terms: &s.terms, Hold: h, Granted: h.Bytes(), SendLimit: early})
	callee.end().Init(piping.Config{Port: callee.port(), Terms: &s.other.terms, Granted: early, SendLimit: h.Bytes()})
	return caller, callee
}

// begin gives the handler of callee its window, and reports whether there was one.
func (e *end) begin() bool {
	var h flow.Window
	if l := e.s.room.Load()[flow.Served]; l.Granted == l.Minimum {
		return false
	}
	e.s.room.Begin(&h)
	e.end().BeginHandler(h)
	return true
}

// send sends a Block of n bytes.
func (e *end) send(n int) *doing {
	return do(func(ctx context.Context) (pipe.Block, error) { return pipe.Block{}, e.Send(ctx, make([]byte, n)) })
}

// recv receives a Block.
func (e *end) recv() *doing {
	return do(func(ctx context.Context) (pipe.Block, error) { return e.Recv(ctx) })
}
