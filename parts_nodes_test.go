package asterisque_test

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/race"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// nodesCall makes a call whose Open has parts, until its end.
type nodesCall struct {
	again bool // it goes on to another server, or comes back to its session
	back  bool // the server makes it

	blocks bool // its parts are those of Blocks, and not of the Open
	calls  func(n *partedNodes) func(ctx context.Context) error
}

func callOf(f func(n *partedNodes, ctx context.Context) error) func(n *partedNodes) func(context.Context) error {
	return func(n *partedNodes) func(context.Context) error {
		return func(ctx context.Context) error { return f(n, ctx) }
	}
}

func resultOf(p *pipe.Pipe, err error) error {
	if err == nil {
		_, err = p.Result(background)
		p.Abort(nil) // and what it has not taken
	}
	return err
}

var nodesCalls = map[string]nodesCall{
	"on a session": {calls: callOf(func(n *partedNodes, ctx context.Context) error {
		_, err := n.conn.Session().Call(ctx, 5, make([]byte, partedLen))
		return err
	})},
	"on a Connection": {again: true, calls: callOf(func(n *partedNodes, ctx context.Context) error {
		_, err := n.conn.Call(ctx, 5, make([]byte, partedLen))
		return err
	})},
	"intercepted, on a Connection": {again: true, calls: callOf(func(n *partedNodes, ctx context.Context) error {
		_, err := n.conn.Call(ctx, 5, make([]byte, partedLen), asterisque.WithCallInterceptors(passesOn))
		return err
	})},
	"durable": {again: true, calls: callOf(func(n *partedNodes, ctx context.Context) error {
		_, err := n.conn.Call(ctx, 5, make([]byte, partedLen), asterisque.WithDurable())
		return err
	})},
	"stream on a session": {calls: callOf(func(n *partedNodes, ctx context.Context) error {
		return resultOf(n.conn.Session().Open(ctx, 6, make([]byte, partedLen)))
	})},
	"stream on a Connection": {calls: callOf(func(n *partedNodes, ctx context.Context) error {
		return resultOf(n.conn.Open(ctx, 6, make([]byte, partedLen)))
	})},
	"relayed": {again: true, calls: func(n *partedNodes) func(context.Context) error {
		front := n.relayed()
		return func(ctx context.Context) error {
			_, err := front.Call(ctx, 5, make([]byte, partedLen))
			return err
		}
	}},
	"urgent, with a time to live": {again: true, calls: callOf(func(n *partedNodes, ctx context.Context) error {
		_, err := n.conn.Call(ctx, 5, make([]byte, partedLen), asterisque.WithPriority(3), asterisque.WithTTL(time.Hour))
		return err
	})},
	"Blocks that may be lost or expire": {blocks: true, calls: callOf(func(n *partedNodes, ctx context.Context) error {
		p, err := n.conn.Open(ctx, 6, nil)
		if err != nil {
			return err
		}
		for i := range 3 { // the window may hold no more
			p.Send(ctx, make([]byte, partedLen), pipe.WithLoss(uint8(60*i)), pipe.WithTTL(time.Duration(1+i)*time.Second))
		}
		p.CloseSend()
		return resultOf(p, nil)
	})},
	"back": {back: true, calls: callOf(func(n *partedNodes, ctx context.Context) error {
		n.conn.Session().Call(ctx, 7, nil)
		return <-n.back
	})},
	"pooled": {again: true, calls: func(n *partedNodes) func(context.Context) error {
		n.conn.Close()
		p, err := pool.New(background, n.client, pool.Fixed("tcp://a:1", "tcp://b:1"), pool.Config{
			Connection: asterisque.Reconnection{First: time.Millisecond, Most: 10 * time.Millisecond},
			Dial: func(_ context.Context, at pool.Address) (wire.Wire, error) {
				a, b := n.gate.pair()
				to := n.servers[at.URL[len("tcp://")]-'a']
				go to.Accept(background, b) // ends with the handshake
				return a, nil
			},
		})
		require.NoError(n.t, err)
		n.pool = p
		n.t.Cleanup(func() { p.Close() })
		return func(ctx context.Context) error {
			_, err := asterisque.CallOn(ctx, p, 5, make([]byte, partedLen))
			return err
		}
	}},
}

// nodesEnd is what happens while the parts of an Open cross.
type nodesEnd struct {
	do      func(n *partedNodes, cancel context.CancelFunc)
	last    func() // happens to the writer of the next part
	resumes bool   // sessions do
	drains  bool   // calls that have not run say so, and go on elsewhere
	nothing bool   // no call fails
	cancels bool
	unknown bool // what the call comes to
	here    bool // this side drains its sessions: running calls go on, and new ones are refused
}

var nodesEnds = map[string]nodesEnd{
	"nothing": {nothing: true, do: func(*partedNodes, context.CancelFunc) {}},
	"drained there": {drains: true, do: func(n *partedNodes, _ context.CancelFunc) {
		n.moves()
		go n.servers[0].Shutdown(background)
	}},
	"drained there, with resume": {drains: true, resumes: true, do: func(n *partedNodes, _ context.CancelFunc) {
		n.moves()
		go n.servers[0].Shutdown(background)
	}},
	"drained here": {here: true, do: func(n *partedNodes, _ context.CancelFunc) {
		for _, s := range n.client.Sessions() {
			go s.Shutdown(background)
		}
	}},
	"drained on both sides": {drains: true, here: true, do: func(n *partedNodes, _ context.CancelFunc) {
		n.moves()
		for _, s := range n.client.Sessions() {
			go s.Shutdown(background)
		}
		go n.servers[0].Shutdown(background)
	}},
	"cut, with resume": {resumes: true, nothing: true, do: func(n *partedNodes, _ context.CancelFunc) { n.gate.cut() }},
	"cut, and relayed by the other server": {resumes: true, nothing: true, do: func(n *partedNodes, _ context.CancelFunc) {
		n.moves()
		n.gate.cut()
	}},
	"cut, and drained while away": {resumes: true, do: func(n *partedNodes, _ context.CancelFunc) {
		n.gate.cut()
		n.moves()
		go n.servers[0].Shutdown(background)
	}},
	"cut":          {do: func(n *partedNodes, _ context.CancelFunc) { n.gate.cut() }},
	"closed there": {do: func(n *partedNodes, _ context.CancelFunc) { n.moves(); go n.servers[0].Close() }},
	"closed here": {do: func(n *partedNodes, _ context.CancelFunc) {
		for _, s := range n.client.Sessions() {
			go s.Close()
		}
	}},
	"retired":                      {nothing: true, do: func(n *partedNodes, _ context.CancelFunc) { retireAll(n.client) }},
	"canceled":                     {cancels: true, do: func(_ *partedNodes, cancel context.CancelFunc) { cancel() }},
	"the wire panics":              {last: func() { panic("of a wire") }, do: func(*partedNodes, context.CancelFunc) {}},
	"the writer ends":              {last: runtime.Goexit, do: func(*partedNodes, context.CancelFunc) {}},
	"smaller limits there":         {nothing: true, do: func(n *partedNodes, _ context.CancelFunc) { tighten(n.t, n.servers[0]); tighten(n.t, n.servers[1]) }},
	"smaller limits here":          {nothing: true, do: func(n *partedNodes, _ context.CancelFunc) { tighten(n.t, n.client) }},
	"paused there":                 {nothing: true, do: func(n *partedNodes, _ context.CancelFunc) { pauseAll(n.servers[0]); pauseAll(n.servers[1]) }},
	"paused here":                  {nothing: true, do: func(n *partedNodes, _ context.CancelFunc) { pauseAll(n.client) }},
	"the wire panics, with resume": {resumes: true, nothing: true, last: func() { panic("of a wire") }, do: func(*partedNodes, context.CancelFunc) {}},
}

// moves makes the client dial the other server from now on.
func (n *partedNodes) moves() {
	n.mu.Lock()
	n.present = 1
	n.mu.Unlock()
}

// tighten halves the inbound soft limit of all sessions of a node, and sets the outbound one to one
// message.
func tighten(t *testing.T, n *asterisque.Node) {
	for _, s := range n.Sessions() {
		in := limits.Limits{Soft: limits.Amount{Bytes: s.Limits(asterisque.Inbound).Soft.Bytes / 2}}
		require.NoError(t, s.SetLimits(in, limits.Limits{Soft: limits.Amount{Messages: 1}}))
	}
}

func retireAll(n *asterisque.Node) {
	for _, s := range n.Sessions() {
		s.Retire()
	}
}

func pauseAll(n *asterisque.Node) {
	for _, s := range n.Sessions() {
		s.Pause()
		time.AfterFunc(time.Second, s.Unpause)
	}
}

// TestParts_CallBetweenNodes lets things happen to calls of all kinds when so many parts of their
// Opens have crossed. A call that has not run says so wherever that can be known, and none does
// that has run; where another server takes over, no call fails.
func TestParts_CallBetweenNodes(t *testing.T) {
	n := 0
	for _, kind := range slices.Sorted(maps.Keys(nodesCalls)) {
		for _, end := range slices.Sorted(maps.Keys(nodesEnds)) {
			for parts := range fourParts + 1 {
				if n++; !sampled(n) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					defer func() {
						if t.Failed() {
							t.Logf("%s/%s/%d", kind, end, parts)
						}
					}()
					playNodes(t, nodesCalls[kind], nodesEnds[end], parts)
				})
			}
		}
	}
}

// TestParts_TwoEndsAtOnce lets each two of these things happen to a call of each kind, one right
// after the other. Without -soak it tries one combination of 61, and with the race detector fewer.
func TestParts_TwoEndsAtOnce(t *testing.T) {
	kinds, ends := slices.Sorted(maps.Keys(nodesCalls)), slices.Sorted(maps.Keys(nodesEnds))
	n, every := 0, 61
	switch {
	case *soak:
		every = 1
	case race.Enabled:
		every = 101
	}
	for _, kind := range kinds {
		for _, first := range ends {
			for _, second := range ends {
				for _, parts := range []int{0, 2, fourParts} {
					if n++; n%every != 0 {
						continue
					}
					synctest.Test(t, func(t *testing.T) {
						defer func() {
							if t.Failed() {
								t.Logf("%s/%s/%s/%d", kind, first, second, parts)
							}
						}()
						playNodes(t, nodesCalls[kind], nodesEnds[first].then(nodesEnds[second]), parts)
					})
				}
			}
		}
	}
}

// then lets another end follow at once. What becomes of the call is not known then, but for what
// holds of every call.
func (e nodesEnd) then(other nodesEnd) nodesEnd {
	last := e.last
	if last == nil {
		last = other.last
	}
	return nodesEnd{unknown: true, last: last, resumes: e.resumes || other.resumes, do: func(n *partedNodes, cancel context.CancelFunc) {
		e.do(n, cancel)
		other.do(n, cancel)
	}}
}

func playNodes(t *testing.T, c nodesCall, e nodesEnd, parts int) {
	n := newPartedNodes(t, parts, e.resumes)
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	call := c.calls(n)
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	synctest.Wait()
	e.do(n, cancel)
	synctest.Wait()
	n.gate.goOn(e.last)
	var err error
	select {
	case err = <-done:
	case <-time.After(2 * time.Minute): // of the bubble
		require.Fail(t, "the call hangs")
	}
	synctest.Wait()
	time.Sleep(3 * time.Second) // of the bubble
	for _, node := range append(n.servers[:], n.client) {
		for _, s := range node.Sessions() {
			if !s.Away() {
				require.Empty(t, leftOf(s.Stats()))
			}
		}
	}
	n.mu.Lock()
	ran := n.ran[0] + n.ran[1]
	n.mu.Unlock()
	require.LessOrEqual(t, ran, 1)
	switch {
	case err == nil:
		require.Equal(t, 1, ran)
	case asterisque.Repeatable(err):
		require.Zero(t, ran, "%v", err)
	}
	drains, nothing := e.drains || e.here && c.back, e.nothing || e.here && !e.drains && !c.back
	switch {
	case e.unknown:
	case nothing && c.blocks: // an Ask may wait for a Block that expired
	case nothing, drains && c.again && !e.here:
		require.NoError(t, err)
	case err == nil, ran > 0:
	case drains, parts < fourParts-1 && !e.cancels:
		require.True(t, asterisque.Repeatable(err), "%v", err)
	}
}
