package asterisquetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// Peer is the other side of the program under test: a node with functions that are written in the
// test. The test registers them in Service. Then the program can
//
//   - dial it, at [Peer.URL], any number of times,
//   - get a session with it, by [Peer.Connect], or
//   - make calls on it: a Peer is a Caller, over a session with an empty node.
//
// A call of a missing function fails with ErrNoFunction, as on any node, and fails the test, with
// the function and the parameters in the error. Calls that still run at the end of the test are
// reported as those of [Pair] are.
type Peer struct {
	// Service has the functions of the peer. They are registered before the program connects or
	// calls; the Peer itself uses HandleUnknown.
	Service *asterisque.Service

	t          testing.TB // these are fixed
	node       *asterisque.Node
	program    *asterisque.Node // makes the calls on the peer as a Caller
	complaints *backgroundErrors

	listen, attach sync.Once
	url            string              // of the listener; written by listen
	serves         sync.WaitGroup      // until it stops listening
	session        *asterisque.Session // of program; written by attach
	failed         error               // reason if there is none; written by attach

	mu       sync.Mutex
	sessions []*asterisque.Session // guarded by mu; begun, and not returned by Session yet
	begun    chan struct{}         // guarded by mu; closed, and made anew, when one begins
}

// NewPeer returns a peer that ends with the test. opts are for its node. The default ID is "peer",
// and the service is always that of the peer.
func NewPeer(t testing.TB, opts ...asterisque.Option) *Peer {
	p := &Peer{Service: asterisque.NewService(), t: t, complaints: newComplaints(t), begun: make(chan struct{})}
	p.Service.HandleUnknown(p.unexpected)
	t.Cleanup(p.serves.Wait)
	w := new(callWatch)
	p.program = asterisque.NewNode(w.node("program", nil)...)
	p.node = asterisque.NewNode(w.node("peer", slices.Concat(opts, []asterisque.Option{
		asterisque.WithService(p.Service), asterisque.WithHooks(asterisque.Hooks{SessionBegun: p.note}),
	}))...)
	w.closeAtEnd(t, p.program, p.node)
	return p
}

// Node returns the node of the peer, for any other use in a test. It is closed at the end of the
// test.
func (p *Peer) Node() *asterisque.Node { return p.node }

// URL returns the URL at which the peer listens, in this program: the program under test dials it.
// It fails the test at once if the node of the peer cannot listen.
func (p *Peer) URL() string {
	p.t.Helper()
	p.listen.Do(func() {
		var ln wire.Listener
		err := p.node.Check()
		if err == nil {
			ln, err = wire.Listen(context.Background(), fmt.Sprintf("mem://asterisquetest/%p", p), wire.Options{})
		}
		if err != nil {
			p.t.Fatalf("asterisquetest: the peer cannot listen: %v", err)
		}
		p.url = ln.URL()
		// it ends when the node is closed
		p.serves.Go(func() { p.node.Serve(context.Background(), ln) })
	})
	return p.url
}

// Connect connects a node of the program with the peer, and returns the session of the program,
// which is closed with the test. It fails the test at once if they do not connect.
func (p *Peer) Connect(node *asterisque.Node) *asterisque.Session {
	p.t.Helper()
	s, _ := ConnectNodes(p.t, node, p.node)
	return s
}

// Session waits until the program has connected, and returns the session. The test calls the
// functions of the program on it. Each session is returned once, in the order in which they began.
// The error is that of ctx.
func (p *Peer) Session(ctx context.Context) (*asterisque.Session, error) {
	for {
		p.mu.Lock()
		begun := p.begun
		if len(p.sessions) > 0 {
			s := p.sessions[0]
			p.sessions = p.sessions[1:]
			p.mu.Unlock()
			return s, nil
		}
		p.mu.Unlock()
		select {
		case <-begun:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// note passes a session that begins to Session.
func (p *Peer) note(s *asterisque.Session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions = append(p.sessions, s)
	close(p.begun)
	p.begun = make(chan struct{})
}

// Invoke implements [asterisque.Caller]: the peer is called over a separate session.
func (p *Peer) Invoke(ctx context.Context, c *asterisque.Call) error {
	p.attach.Do(func() {
		a, b := wire.Pipe()
		p.session, _, p.failed = attach(p.program, p.node, a, b)
	})
	if p.failed != nil {
		return c.Refuse(p.failed)
	}
	return p.session.Invoke(ctx, c)
}

// unexpected handles the calls of missing functions.
func (p *Peer) unexpected(_ context.Context, call *pipe.Pipe, params []byte) ([]byte, error) {
	p.complaints.add("the program has called function %d, for which its peer has no handler, with %s", call.Function(), shown(params))
	return nil, asterisque.ErrNoFunction.Withf("function %d", call.Function())
}
