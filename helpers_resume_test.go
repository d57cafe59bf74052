package asterisque_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// links dials wires within the program to one node after the other, and lets things go wrong with
// them. It suits synctest.
type links struct {
	mu    sync.Mutex
	to    *asterisque.Node // guarded by mu, as all below
	fail  func() error     // what dialling fails with; nil: it does not
	last  *wiretest.Wire
	dials []time.Time
}

func (l *links) dial(context.Context) (wire.Wire, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dials = append(l.dials, time.Now())
	if l.fail != nil {
		if err := l.fail(); err != nil {
			return nil, err
		}
	}
	a, b := wire.Pipe()
	l.last = wiretest.Faulty(a, wiretest.Faults{})
	to := l.to
	go to.Accept(background, b) // ends with the handshake
	return l.last, nil
}

// cut loses the present wire.
func (l *links) cut() {
	l.mu.Lock()
	w := l.last
	l.mu.Unlock()
	w.Cut()
}

// halfOpen loses what is sent on the present wire.
func (l *links) halfOpen() {
	l.mu.Lock()
	w := l.last
	l.mu.Unlock()
	w.HalfOpen()
}

// failWith lets dialling fail from now on, or succeed again.
func (l *links) failWith(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = func() error { return err }
}

// leadTo lets dialling reach another node from now on.
func (l *links) leadTo(n *asterisque.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.to = n
}

// attempts returns how long after the one before each wire was dialled.
func (l *links) attempts() (waits []time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, at := range l.dials[1:] {
		waits = append(waits, at.Sub(l.dials[i]))
	}
	return waits
}

// link connects two new nodes, of which the second one offers svc. All end with the test.
func link(t *testing.T, svc *asterisque.Service, how asterisque.Reconnection, opts ...asterisque.Option) (conn *asterisque.Connection, l *links, here, there *asterisque.Node) {
	t.Helper()
	here = asterisque.NewNode(opts...)
	there = asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	l = &links{to: there}
	how.Dial = l.dial
	conn, err := here.Connect(background, "", how)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, l, here, there
}

// resumable is hello of a peer that can resume the session.
func resumable() message.Sync {
	h := hello()
	h.Features = message.FeatureResume
	return h
}

// resuming is hello of a peer that wants to resume the session which first began, of which it has
// received so many frames.
func resuming(first message.Sync, received uint64) message.Sync {
	h := resumable()
	h.Session, h.Secret, h.Received = first.Session, first.Secret, received
	return h
}

// rawTo connects a rawPeer to a node, over a wire in memory on which things can go wrong, and
// returns what the node says to hello.
func rawTo(t *testing.T, n *asterisque.Node, hello message.Sync) (*rawPeer, message.Sync) {
	t.Helper()
	p, accepted := pipeAccepted(t, n)
	p.send(hello)
	reply, ok := p.control().(message.Sync)
	require.True(t, ok)
	<-accepted // the answer is written before the session is among those of n
	return p, reply
}

// rawSession connects a rawPeer to a new node, over a wire in memory, and returns the session.
func rawSession(t *testing.T, opts ...asterisque.Option) (*rawPeer, *asterisque.Session) {
	t.Helper()
	node := newNode(t, opts...)
	p, _ := rawTo(t, node, hello())
	return p, node.Sessions()[0]
}

// pipeTo connects a rawPeer to a node as rawTo does, and leaves the handshake to it.
func pipeTo(t *testing.T, n *asterisque.Node) *rawPeer {
	p, _ := pipeAccepted(t, n)
	return p
}

// pipeAccepted is pipeTo, and returns what is closed when Accept has returned.
func pipeAccepted(t *testing.T, n *asterisque.Node) (*rawPeer, <-chan struct{}) {
	a, b := wire.Pipe()
	p := &rawPeer{t, wiretest.Faulty(a, wiretest.Faults{})}
	t.Cleanup(func() { p.w.Close() })
	accepted := make(chan struct{})
	go func() { // ends with the handshake
		defer close(accepted)
		n.Accept(background, b) // what it returns, the peer sees
	}()
	return p, accepted
}

// newProxy returns a proxy before a node that listens on TCP loopback.
func newProxy(t testing.TB, n *asterisque.Node) *wiretest.Proxy {
	t.Helper()
	p, err := wiretest.NewProxy(serve(t, n)[len("tcp://"):], wiretest.Faults{})
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}
