package connections

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// restartable is a server at one TCP address that is replaced repeatedly.
type restartable struct {
	t    *testing.T
	svc  *asterisque.Service
	url  string
	node *asterisque.Node
	over chan struct{} // closed when node listens no more
}

func newRestartable(t *testing.T, svc *asterisque.Service) *restartable {
	r := &restartable{t: t, svc: svc, url: "tcp://127.0.0.1:0"}
	r.start()
	t.Cleanup(func() { r.node.Close(); <-r.over })
	return r
}

func (r *restartable) start() {
	ln, err := wire.Listen(testkit.Background, r.url, wire.Options{})
	require.NoError(r.t, err)
	r.url = ln.URL()
	node, over := asterisque.NewNode(asterisque.WithService(r.svc)), make(chan struct{})
	r.node, r.over = node, over
	go func() { // ends with the node
		defer close(over)
		node.Serve(testkit.Background, ln)
	}()
}

// restart replaces the server gracefully: the old one shuts down first.
func (r *restartable) restart() {
	ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
	defer cancel()
	require.NoError(r.t, r.node.Shutdown(ctx))
	<-r.over
	r.start()
}

// TestRestart_NoCallFails requires that no call of 20 callers on one connection fails during ten
// graceful restarts.
func TestRestart_NoCallFails(t *testing.T) {
	t.Parallel()
	svc := testkit.EchoService()
	server := newRestartable(t, svc)
	conn, err := testkit.NewNode(t).Connect(testkit.Background, server.url, asterisque.ReconnectConfig{First: 10 * time.Millisecond})
	require.NoError(t, err)
	defer conn.Close()
	var calls atomic.Int64
	callers, stop := callersOn(t, 20, func() error {
		ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
		defer cancel()
		calls.Add(1)
		_, err := testkit.Echo.Call(ctx, conn, "hello")
		return err
	})
	for range 10 {
		before := calls.Load()
		server.restart()
		require.Eventually(t, func() bool { return calls.Load() > before+40 }, testkit.Patience, time.Millisecond, "calls continue")
	}
	stop()
	callers.Wait()
}

// callersOn makes n goroutines call until stop is called. A call that fails fails the test.
func callersOn(t *testing.T, n int, call func() error) (callers *sync.WaitGroup, stop func()) {
	callers = new(sync.WaitGroup)
	var over atomic.Bool
	for range n {
		callers.Go(func() {
			for !over.Load() {
				if err := call(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	return callers, func() { over.Store(true) }
}

// TestRestart_OpenStream replaces a server while a stream runs: the old server waits for it.
func TestRestart_OpenStream(t *testing.T) {
	svc := testkit.EchoService()
	svc.Handle(77, "mirror", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		n := byte(0)
		for {
			b, err := p.Recv(ctx)
			if err != nil {
				return []byte{n}, nil
			}
			n++
			if err := p.Send(ctx, b.Payload); err != nil {
				return nil, err
			}
		}
	})
	server := newRestartable(t, svc)
	conn, err := testkit.NewNode(t).Connect(testkit.Background, server.url, asterisque.ReconnectConfig{First: 50 * time.Millisecond})
	require.NoError(t, err)
	defer conn.Close()
	for range 3 {
		old := conn.Session()
		p, err := conn.Open(testkit.Background, 77, nil)
		require.NoError(t, err)
		send := func(s string) {
			require.NoError(t, p.Send(testkit.Background, []byte(s)))
			b, err := p.Recv(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, s, string(b.Payload))
		}
		send("before")
		next, down := asterisque.NewNode(asterisque.WithService(svc)), make(chan error, 1)
		go func(n *asterisque.Node) { down <- n.Shutdown(testkit.Background) }(server.node)
		<-server.over // listens no more, but has not ended
		ln, err := wire.Listen(testkit.Background, server.url, wire.Options{})
		require.NoError(t, err)
		over := make(chan struct{})
		server.node, server.over = next, over
		go func() { defer close(over); next.Serve(testkit.Background, ln) }()
		_, err = testkit.Echo.Call(testkit.Background, conn, "to either server")
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			s := conn.Session() // nil for a moment
			return s != nil && s != old
		}, testkit.Patience, time.Millisecond)
		_, err = testkit.Echo.Call(testkit.Background, conn, "to the next server")
		require.NoError(t, err)
		send("after")
		require.NoError(t, p.CloseSend())
		res, err := p.Result(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, []byte{2}, res)
		require.NoError(t, <-down)
	}
}

// TestRestart_ClientsSpread requires that 1,000 clients do not reconnect at the same time after a
// server was unavailable.
func TestRestart_ClientsSpread(t *testing.T) {
	testkit.SkipRace(t)
	for name, c := range map[string]struct {
		away    time.Duration
		goodbye bool
	}{
		"in good order, at once":      {0, true},
		"in good order, after 2 s":    {2 * time.Second, true},
		"killed, back after 10 s":     {10 * time.Second, false},
		"killed, back after a minute": {time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &herd{perTick: make(map[time.Duration]int), begin: time.Now()}
				h.to.Store(asterisque.NewNode())
				const clients = 1000
				here := asterisque.NewNode()
				defer here.Close()
				conns := make([]*asterisque.Connection, clients)
				for i := range conns {
					var err error
					conns[i], err = here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: h.dial})
					require.NoError(t, err)
				}
				fakeclock.Sleep(time.Minute)
				h.reset()
				old := h.to.Swap(nil)
				if c.goodbye {
					go old.Shutdown(testkit.Background) // ends with the sessions
				} else {
					h.cut()
				}
				fakeclock.Sleep(c.away)
				next := asterisque.NewNode()
				defer next.Close()
				defer old.Close()
				h.to.Store(next)
				back := time.Now()
				for _, conn := range conns {
					for !conn.Ready() {
						fakeclock.Sleep(10 * time.Millisecond)
					}
				}
				require.LessOrEqual(t, time.Since(back), 5*time.Second)
				require.LessOrEqual(t, h.most(), 300, "attempts within 100 ms")
			})
		})
	}
}

// herd has many connections to one server, and counts their attempts.
type herd struct {
	to    atomic.Pointer[asterisque.Node] // nil: there is none
	begin time.Time

	mu      sync.Mutex
	perTick map[time.Duration]int // attempts in each 10 ms; guarded by mu, as wires
	wires   []wire.Wire
}

func (h *herd) dial(context.Context) (wire.Wire, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.perTick[time.Since(h.begin)/(10*time.Millisecond)]++
	to := h.to.Load()
	if to == nil {
		return nil, testkit.ErrBroken
	}
	a, b := wire.Pipe()
	h.wires = append(h.wires, b)
	go to.Accept(testkit.Background, b) // ends with the handshake
	return a, nil
}

func (h *herd) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.perTick)
}

func (h *herd) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, w := range h.wires {
		w.Close()
	}
	h.wires = nil
}

// most returns the largest number of attempts in any 100 ms.
func (h *herd) most() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	most := 0
	for tick := range h.perTick {
		sum := 0
		for i := range time.Duration(10) {
			sum += h.perTick[tick+i]
		}
		most = max(most, sum)
	}
	return most
}

// TestRestart_UnsentCalls requires that calls that wait for room at a peer when the wire fails
// succeed on the next one; calls that were sent fail.
func TestRestart_UnsentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var blocks atomic.Bool
		blocks.Store(true)
		svc := asterisque.NewService()
		svc.Handle(10, "gated", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
			if blocks.Load() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []byte("done"), nil
		})
		conn, l, _, _ := testkit.Link(t, svc, asterisque.ReconnectConfig{}, asterisque.WithWorkers(asterisque.Workers{Session: 2}),
			asterisque.WithLimits(asterisque.Limits{Inbound: testkit.Messages(10, 100)}))
		const calls = 100
		results := make(chan error, calls)
		for range calls {
			go func() { // ends with the call
				_, err := conn.Call(testkit.Background, 10, nil)
				results <- err
			}()
		}
		synctest.Wait()
		sent := int(conn.Session().Stats().Made)
		require.Less(t, sent, calls/2, "most wait for room")
		require.NotZero(t, sent)
		blocks.Store(false)
		l.Cut()
		failed := 0
		for range calls {
			if err := <-results; err != nil {
				require.ErrorIs(t, err, asterisque.ErrSessionClosed)
				require.False(t, asterisque.Repeatable(err), "it was sent")
				failed++
			}
		}
		require.Equal(t, sent, failed)
	})
}
