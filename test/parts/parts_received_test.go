package parts

import (
	"bytes"
	"context"
	"maps"
	"runtime"
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

// receivedParts is a message of three parts that a node receives.
type receivedParts struct {
	open   bool
	stream bool // there is a pipe, and its application may end it
	close  bool
	none   bool // nothing waits for the application
	// begin prepares the pipe, and returns the parts and, if the node made the call, its outcome.
	begin func(r *receivedRig) (parts []*message.Part, outcome <-chan error)
}

// receivedRig is a session with a peer that sends a message in parts.
type receivedRig struct {
	*partedRig
	end  chan func()        // what the handler does; it returns if that does
	ran  chan struct{}      // gets a token when function 1 runs
	life context.CancelFunc // ends the calls of the node
	got  chan message.Close // the Closes of the node
	said chan message.Drain // likewise
	over chan struct{}      // closed when the wire has ended
	ctx  context.Context
}

func newReceivedRig(t *testing.T, dials bool) *receivedRig {
	r := &receivedRig{end: make(chan func(), 1), ran: make(chan struct{}, 10), got: make(chan message.Close, 100), said: make(chan message.Drain, 10), over: make(chan struct{})}
	svc := asterisque.NewService()
	svc.Handle(1, "takes", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		r.ran <- struct{}{}
		return []byte{byte(len(params) >> 8)}, nil
	})
	svc.Handle(2, "waits", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		select {
		case f := <-r.end:
			f()
		case <-ctx.Done():
		}
		return nil, ctx.Err()
	})
	r.partedRig = newPartedRig(t, dials, asterisque.WithService(svc))
	r.ctx, r.life = context.WithCancel(testkit.Background)
	t.Cleanup(r.life)
	return r
}

// listen reads until the wire ends.
func (r *receivedRig) listen() {
	go func() {
		defer close(r.over)
		for {
			f, err := r.p.W.ReadFrame(message.MaxFrame)
			if err != nil {
				return
			}
			if m, err := message.ParseClose(f); err == nil {
				if m.Abort != nil {
					a := *m.Abort
					m.Abort = &a
				}
				m.Result = bytes.Clone(m.Result)
				r.got <- m
			}
			if c, err := message.ParseControl(f); err == nil {
				if d, ok := c.(message.Drain); ok {
					r.said <- d
				}
			}
		}
	}()
}

// calls makes the node call, and returns its pipe and its outcome.
func (r *receivedRig) calls(call func(ctx context.Context) error) (id uint64, outcome <-chan error) {
	done := make(chan error, 1)
	go func() { done <- call(r.ctx) }()
	return r.p.Open().Pipe, done
}

func parts(m interface{ AppendTo([]byte) []byte }) []*message.Part { return partsOf(m, 1024) }

var receivedMessages = map[string]receivedParts{
	"Open": {open: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		return parts(&message.Open{Pipe: r.own(1), Function: 1, Params: make([]byte, 3000)}), nil
	}},
	"Open of a stream": {open: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		return parts(&message.Open{Pipe: r.own(1), Function: 1, Params: make([]byte, 3000), Meta: message.Meta{Stream: true, Window: 1000}}), nil
	}},
	"Open of no function": {open: true, none: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		return parts(&message.Open{Pipe: r.own(1), Function: 77, Params: make([]byte, 3000)}), nil
	}},
	"Open with a key": {open: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		return parts(&message.Open{Pipe: r.own(1), Function: 1, Params: make([]byte, 3000), Meta: message.Meta{Key: []byte("sixteen bytes or")}}), nil
	}},
	"nested Open": {open: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		id, done := r.calls(func(ctx context.Context) error { _, err := r.s.Call(ctx, 5, nil); return err })
		return parts(testkit.Within(&message.Open{Pipe: r.own(1), Function: 1, Params: make([]byte, 3000)}, id)), done
	}},
	"Block to a handler": {stream: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		r.say(&message.Open{Pipe: r.own(1), Function: 2, Meta: message.Meta{Stream: true, Window: 1000}})
		synctest.Wait()
		return parts(&message.Block{Pipe: r.own(1), Payload: make([]byte, 3000)}), nil
	}},
	"Block to a caller": {stream: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		id, done := r.calls(openAndWait(r))
		return parts(&message.Block{Pipe: id, Payload: make([]byte, 3000)}), done
	}},
	"result": {close: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		id, done := r.calls(func(ctx context.Context) error { _, err := r.s.Call(ctx, 5, nil); return err })
		return parts(&message.Close{Pipe: id, Result: make([]byte, 3000)}), done
	}},
	"result of a stream": {close: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		id, done := r.calls(openAndWait(r))
		return parts(&message.Close{Pipe: id, Result: make([]byte, 3000)}), done
	}},
	"abort": {close: true, begin: func(r *receivedRig) ([]*message.Part, <-chan error) {
		id, done := r.calls(func(ctx context.Context) error { _, err := r.s.Call(ctx, 5, nil); return err })
		return parts(&message.Close{Pipe: id, Abort: &codec.Abort{Code: 1000, Detail: make([]byte, 3000)}}), done
	}},
}

func openAndWait(r *receivedRig) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		p, err := r.s.Open(ctx, 5, nil)
		if err == nil {
			_, err = p.Result(testkit.Background)
		}
		return err
	}
}

// receivedEnd is an event between two parts.
type receivedEnd struct {
	do    func(r *receivedRig, m receivedParts, id uint64)
	over  bool // the session ends
	goes  bool // the message continues, and arrives
	last  bool // no part may follow
	drain bool // the session ends when nothing runs any more

	refuses bool // an unfinished Open is refused before the end
	only    func(m receivedParts) bool
}

func ofHandler(f func()) receivedEnd {
	return receivedEnd{
		do:   func(r *receivedRig, _ receivedParts, _ uint64) { r.end <- f },
		only: func(m receivedParts) bool { return m.stream },
	}
}

var receivedEnds = map[string]receivedEnd{
	"nothing": {goes: true, do: func(*receivedRig, receivedParts, uint64) {}},
	"an abort": {do: func(r *receivedRig, _ receivedParts, id uint64) {
		r.say(&message.Close{Pipe: id, Abort: &codec.Abort{Code: codec.Canceled}})
	}},
	"given up": {last: true, do: func(r *receivedRig, _ receivedParts, id uint64) { r.say(&message.Part{Pipe: id, GivenUp: true}) }},
	"cut":      {over: true, do: func(r *receivedRig, _ receivedParts, _ uint64) { r.p.W.Close() }},
	"closed by the peer": {over: true, do: func(r *receivedRig, _ receivedParts, _ uint64) {
		r.say(message.SessionClose{Code: codec.SessionClosed})
	}},
	"a violation":         {over: true, do: func(r *receivedRig, _ receivedParts, _ uint64) { r.say(&message.Close{Pipe: 1 << 40}) }},
	"closed":              {over: true, refuses: true, do: func(r *receivedRig, _ receivedParts, _ uint64) { go r.s.Close() }},
	"shut down":           {drain: true, do: func(r *receivedRig, _ receivedParts, _ uint64) { go r.s.Shutdown(testkit.Background) }},
	"its node shut down":  {drain: true, do: func(r *receivedRig, _ receivedParts, _ uint64) { go r.node.Shutdown(testkit.Background) }},
	"drained by the peer": {goes: true, do: func(r *receivedRig, _ receivedParts, _ uint64) { r.say(message.Drain{Last: 1 << 30}) }},
	"canceled":            {do: func(r *receivedRig, _ receivedParts, _ uint64) { r.life() }, only: func(m receivedParts) bool { return m.close }},
	"the handler returns": ofHandler(func() {}),
	"the handler panics":  ofHandler(func() { panic("between two parts") }),
	"the handler goes":    ofHandler(runtime.Goexit),
	"paused for a moment": {goes: true, do: func(r *receivedRig, _ receivedParts, _ uint64) {
		r.s.StopReading()
		time.AfterFunc(time.Second, r.s.StartReading)
	}},
	"smaller limits": {goes: true, do: func(r *receivedRig, _ receivedParts, _ uint64) {
		in := r.s.Limits(asterisque.Inbound)
		in = limits.Limits{Soft: limits.Amount{Bytes: in.Soft.Bytes / 2}}
		require.NoError(r.t, r.s.SetLimits(in, r.s.Limits(asterisque.Outbound)))
	}},
	"beyond the hard limit": {over: true, only: func(m receivedParts) bool { return !m.close && !m.none }, do: func(r *receivedRig, _ receivedParts, _ uint64) {
		tiny := limits.Limits{Soft: limits.Amount{Bytes: 100}, Hard: limits.Amount{Bytes: 200}}
		require.NoError(r.t, r.s.SetLimits(tiny, r.s.Limits(asterisque.Outbound)))
	}},
}

// TestParts_ArrivingEnds ends each message that arrives in parts in each way, after each number of
// its three parts. Nothing of it is kept, and an Open that was refused, canceled or lost has not
// run.
func TestParts_ArrivingEnds(t *testing.T) {
	for _, dials := range []bool{true, false} {
		for _, name := range slices.Sorted(maps.Keys(receivedMessages)) {
			for _, end := range slices.Sorted(maps.Keys(receivedEnds)) {
				for came := range 4 {
					m, e := receivedMessages[name], receivedEnds[end]
					if e.only != nil && !e.only(m) || came == 0 && (e.last || m.open && end == "an abort") || came == 3 && !e.goes && (e.only != nil || !e.over && !e.drain) {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						r := newReceivedRig(t, dials)
						defer func() {
							if t.Failed() {
								t.Logf("dials %v/%s/%s/%d", dials, name, end, came)
							}
						}()
						r.play(m, e, came)
					})
				}
			}
		}
	}
}

func (r *receivedRig) play(m receivedParts, e receivedEnd, came int) {
	t := r.t
	all, outcome := m.begin(r)
	id := all[0].Pipe
	r.listen()
	for _, p := range all[:came] {
		r.say(p)
	}
	synctest.Wait()
	if came > 0 && came < 3 && e.over {
		require.Positive(t, r.s.Stats().Receiving)
	}
	e.do(r, m, id)
	synctest.Wait()
	if (e.drain || e.refuses) && m.open && came > 0 && came < 3 {
		require.Len(t, r.got, 1, "the refusal of what has not arrived")
		refusal := <-r.got
		require.Equal(t, id, refusal.Pipe)
		require.ErrorIs(t, refusal.Abort, codec.ErrUnavailable)
		require.Equal(t, codec.Refused, refusal.Abort.Ran)
	}
	for _, p := range all[came:] { // late, or the rest
		if !e.last {
			r.say(p)
		}
	}
	synctest.Wait()
	switch {
	case e.goes:
		fakeclock.Sleep(2 * time.Second)
		if m.open {
			<-r.got
		}
	case m.open && came > 0 && came < 3:
		require.Empty(t, r.ran)
		require.Empty(t, r.got, "there is one answer at most")
	}
	r.life()
	if e.drain {
		select {
		case r.end <- func() {}: // a handler that waits
		default:
		}
	}
	if outcome != nil {
		r.outcome(outcome)
	}
	synctest.Wait() // a call that life has ended says so after its caller knows
	if e.over || e.drain {
		select {
		case <-r.s.Done():
		case <-time.After(40 * time.Second): // of the bubble
			require.Fail(t, "the session does not end")
		}
	} else {
		require.NoError(t, r.s.Err())
		r.say(&message.Open{Pipe: r.own(9), Function: 1, Params: make([]byte, 1<<10)})
		synctest.Wait()
		require.Equal(t, r.own(9), lastOf(r.got).Pipe)
		require.Zero(t, r.s.Stats().Receiving)
		r.s.Shutdown(testkit.Background)
		require.Empty(t, r.got, "nothing is left to be refused")
	}
	r.s.Close()
	<-r.over
	require.Zero(t, r.s.Stats().Receiving)
	require.Zero(t, r.s.Stats().Pipes)
}

// lastOf returns the last received Close.
func lastOf(got chan message.Close) (c message.Close) {
	for len(got) > 0 {
		c = <-got
	}
	return c
}
