package parts

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
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// nodesCall makes a call with an Open in parts, until its end.
type nodesCall struct {
	again bool // it continues at another server, or comes back to its session
	back  bool // the server makes it

	blocks bool // its parts are those of Blocks, and not of the Open
	calls  func(n *testkit.PartedNodes) func(ctx context.Context) error
}

func callOf(f func(n *testkit.PartedNodes, ctx context.Context) error) func(n *testkit.PartedNodes) func(context.Context) error {
	return func(n *testkit.PartedNodes) func(context.Context) error {
		return func(ctx context.Context) error { return f(n, ctx) }
	}
}

func resultOf(p *pipe.Pipe, err error) error {
	if err == nil {
		_, err = p.Result(testkit.Background)
		p.Abort(nil) // and what it has not taken
	}
	return err
}

var nodesCalls = map[string]nodesCall{
	"on a session": {calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		_, err := n.Conn.Session().Call(ctx, 5, make([]byte, testkit.PartedLen))
		return err
	})},
	"on a Connection": {again: true, calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		_, err := n.Conn.Call(ctx, 5, make([]byte, testkit.PartedLen))
		return err
	})},
	"intercepted, on a Connection": {again: true, calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		_, err := n.Conn.Call(ctx, 5, make([]byte, testkit.PartedLen), asterisque.WithCallInterceptors(testkit.Passes))
		return err
	})},
	"durable": {again: true, calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		_, err := n.Conn.Call(ctx, 5, make([]byte, testkit.PartedLen), asterisque.WithDurable())
		return err
	})},
	"stream on a session": {calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		return resultOf(n.Conn.Session().Open(ctx, 6, make([]byte, testkit.PartedLen)))
	})},
	"stream on a Connection": {calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		return resultOf(n.Conn.Open(ctx, 6, make([]byte, testkit.PartedLen)))
	})},
	"relayed": {again: true, calls: func(n *testkit.PartedNodes) func(context.Context) error {
		front := n.Relayed()
		return func(ctx context.Context) error {
			_, err := front.Call(ctx, 5, make([]byte, testkit.PartedLen))
			return err
		}
	}},
	"urgent, with a time to live": {again: true, calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		_, err := n.Conn.Call(ctx, 5, make([]byte, testkit.PartedLen), asterisque.WithPriority(3), asterisque.WithTTL(time.Hour))
		return err
	})},
	"Blocks that may be lost or expire": {blocks: true, calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		p, err := n.Conn.Open(ctx, 6, nil)
		if err != nil {
			return err
		}
		for i := range 3 { // the window may hold no more
			p.Send(ctx, make([]byte, testkit.PartedLen), pipe.WithLoss(uint8(60*i)), pipe.WithTTL(time.Duration(1+i)*time.Second))
		}
		p.CloseSend()
		return resultOf(p, nil)
	})},
	"back": {back: true, calls: callOf(func(n *testkit.PartedNodes, ctx context.Context) error {
		n.Conn.Session().Call(ctx, 7, nil)
		return <-n.Back
	})},
	"pooled": {again: true, calls: func(n *testkit.PartedNodes) func(context.Context) error {
		n.Conn.Close()
		p, err := pool.New(testkit.Background, n.Client, pool.Fixed("tcp://a:1", "tcp://b:1"), pool.Config{
			Connection: asterisque.ReconnectConfig{First: time.Millisecond, Most: 10 * time.Millisecond},
			Dial: func(_ context.Context, at pool.Address) (wire.Wire, error) {
				a, b := n.Gate.Pair()
				to := n.Servers[at.URL[len("tcp://")]-'a']
				go to.Accept(testkit.Background, b) // ends with the handshake
				return a, nil
			},
		})
		require.NoError(n.T, err)
		n.Pool = p
		n.T.Cleanup(func() { p.Close() })
		return func(ctx context.Context) error {
			_, err := asterisque.CallOn(ctx, p, 5, make([]byte, testkit.PartedLen))
			return err
		}
	}},
}

// nodesEnd is an event while the parts of an Open are in transit.
type nodesEnd struct {
	do      func(n *testkit.PartedNodes, cancel context.CancelFunc)
	last    func() // happens to the writer of the next part
	resumes bool   // sessions do
	drains  bool   // calls that have not run report that, and continue elsewhere
	nothing bool   // no call fails
	cancels bool
	unknown bool // what the call comes to
	here    bool // this side drains its sessions: running calls continue, and new ones are refused
}

var nodesEnds = map[string]nodesEnd{
	"nothing": {nothing: true, do: func(*testkit.PartedNodes, context.CancelFunc) {}},
	"drained there": {drains: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		n.Moves()
		go n.Servers[0].Shutdown(testkit.Background)
	}},
	"drained there, with resume": {drains: true, resumes: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		n.Moves()
		go n.Servers[0].Shutdown(testkit.Background)
	}},
	"drained here": {here: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		for _, s := range n.Client.Sessions() {
			go s.Shutdown(testkit.Background)
		}
	}},
	"drained on both sides": {drains: true, here: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		n.Moves()
		for _, s := range n.Client.Sessions() {
			go s.Shutdown(testkit.Background)
		}
		go n.Servers[0].Shutdown(testkit.Background)
	}},
	"cut, with resume": {resumes: true, nothing: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) { n.Gate.Cut() }},
	"cut, and relayed by the other server": {resumes: true, nothing: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		n.Moves()
		n.Gate.Cut()
	}},
	"cut, and drained while away": {resumes: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		n.Gate.Cut()
		n.Moves()
		go n.Servers[0].Shutdown(testkit.Background)
	}},
	"cut":          {do: func(n *testkit.PartedNodes, _ context.CancelFunc) { n.Gate.Cut() }},
	"closed there": {do: func(n *testkit.PartedNodes, _ context.CancelFunc) { n.Moves(); go n.Servers[0].Close() }},
	"closed here": {do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		for _, s := range n.Client.Sessions() {
			go s.Close()
		}
	}},
	"retired":         {nothing: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) { retireAll(n.Client) }},
	"canceled":        {cancels: true, do: func(_ *testkit.PartedNodes, cancel context.CancelFunc) { cancel() }},
	"the wire panics": {last: func() { panic("of a wire") }, do: func(*testkit.PartedNodes, context.CancelFunc) {}},
	"the writer ends": {last: runtime.Goexit, do: func(*testkit.PartedNodes, context.CancelFunc) {}},
	"smaller limits there": {nothing: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) {
		tighten(n.T, n.Servers[0])
		tighten(n.T, n.Servers[1])
	}},
	"smaller limits here":          {nothing: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) { tighten(n.T, n.Client) }},
	"paused there":                 {nothing: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) { pauseAll(n.Servers[0]); pauseAll(n.Servers[1]) }},
	"paused here":                  {nothing: true, do: func(n *testkit.PartedNodes, _ context.CancelFunc) { pauseAll(n.Client) }},
	"the wire panics, with resume": {resumes: true, nothing: true, last: func() { panic("of a wire") }, do: func(*testkit.PartedNodes, context.CancelFunc) {}},
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
		s.StopReading()
		time.AfterFunc(time.Second, s.StartReading)
	}
}

// TestParts_BetweenNodes applies events to calls of all kinds after each number of parts of their
// Opens. A call that has not run reports that wherever it can be known, and a call that has run
// never does; if another server takes over, no call fails.
func TestParts_BetweenNodes(t *testing.T) {
	n := 0
	for _, kind := range slices.Sorted(maps.Keys(nodesCalls)) {
		for _, end := range slices.Sorted(maps.Keys(nodesEnds)) {
			for parts := range testkit.FourParts + 1 {
				if n++; !testkit.Sampled(n) {
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

// TestParts_TwoEndsAtOnce applies each pair of these events to a call of each kind, one right after
// the other. Without -soak it tries one combination of 61, and with the race detector fewer.
func TestParts_TwoEndsAtOnce(t *testing.T) {
	kinds, ends := slices.Sorted(maps.Keys(nodesCalls)), slices.Sorted(maps.Keys(nodesEnds))
	n, every := 0, 61
	switch {
	case *testkit.Soak:
		every = 1
	case race.Enabled:
		every = 101
	}
	for _, kind := range kinds {
		for _, first := range ends {
			for _, second := range ends {
				for _, parts := range []int{0, 2, testkit.FourParts} {
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

// then applies another end at once. The outcome of the call is then unknown, except for the rules
// of every call.
func (e nodesEnd) then(other nodesEnd) nodesEnd {
	last := e.last
	if last == nil {
		last = other.last
	}
	return nodesEnd{unknown: true, last: last, resumes: e.resumes || other.resumes, do: func(n *testkit.PartedNodes, cancel context.CancelFunc) {
		e.do(n, cancel)
		other.do(n, cancel)
	}}
}

func playNodes(t *testing.T, c nodesCall, e nodesEnd, parts int) {
	n := testkit.NewPartedNodes(t, parts, e.resumes)
	ctx, cancel := context.WithCancel(testkit.Background)
	defer cancel()
	call := c.calls(n)
	done := make(chan error, 1)
	go func() { done <- call(ctx) }()
	synctest.Wait()
	e.do(n, cancel)
	synctest.Wait()
	n.Gate.GoOn(e.last)
	var err error
	select {
	case err = <-done:
	case <-time.After(2 * time.Minute): // of the bubble
		require.Fail(t, "the call hangs")
	}
	synctest.Wait()
	fakeclock.Sleep(3 * time.Second)
	for _, node := range append(n.Servers[:], n.Client) {
		for _, s := range node.Sessions() {
			if !s.Away() {
				require.Empty(t, testkit.LeftOf(s.Stats()))
			}
		}
	}
	n.Mu.Lock()
	ran := n.Ran[0] + n.Ran[1]
	n.Mu.Unlock()
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
	case nothing && c.blocks: // a sender may wait behind a Block that expired
	case nothing, drains && c.again && !e.here:
		require.NoError(t, err)
	case err == nil, ran > 0:
	case c.blocks: // their Open may have been sent before
	case drains, parts < testkit.FourParts-1 && !e.cancels:
		require.True(t, asterisque.Repeatable(err), "%v", err)
	}
}
