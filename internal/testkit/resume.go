package testkit

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
	"github.com/stretchr/testify/require"
)

// Links dials wires within the program to one node after the other, and lets things go wrong with
// them. It suits synctest.
type Links struct {
	Mu    sync.Mutex
	To    *asterisque.Node // guarded by mu, as all below
	Fail  func() error     // what dialling fails with; nil: it does not
	Last  *wiretest.Wire
	Dials []time.Time
}

// Dial is a Reconnection.Dial.
func (l *Links) Dial(context.Context) (wire.Wire, error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Dials = append(l.Dials, time.Now())
	if l.Fail != nil {
		if err := l.Fail(); err != nil {
			return nil, err
		}
	}
	a, b := wire.Pipe()
	l.Last = wiretest.Faulty(a, wiretest.Faults{})
	to := l.To
	go to.Accept(Background, b) // ends with the handshake
	return l.Last, nil
}

// Cut loses the present wire.
func (l *Links) Cut() {
	l.Mu.Lock()
	w := l.Last
	l.Mu.Unlock()
	w.Cut()
}

// HalfOpen loses what is sent on the present wire.
func (l *Links) HalfOpen() {
	l.Mu.Lock()
	w := l.Last
	l.Mu.Unlock()
	w.HalfOpen()
}

// FailWith lets dialling fail from now on, or succeed again.
func (l *Links) FailWith(err error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Fail = func() error { return err }
}

// LeadTo lets dialling reach another node from now on.
func (l *Links) LeadTo(n *asterisque.Node) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.To = n
}

// Attempts returns how long after the one before each wire was dialled.
func (l *Links) Attempts() (waits []time.Duration) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for i, at := range l.Dials[1:] {
		waits = append(waits, at.Sub(l.Dials[i]))
	}
	return waits
}

// Link connects two new nodes, of which the second one offers svc. All end with the test.
func Link(t *testing.T, svc *asterisque.Service, how asterisque.Reconnection, opts ...asterisque.Option) (conn *asterisque.Connection, l *Links, here, there *asterisque.Node) {
	t.Helper()
	here = asterisque.NewNode(opts...)
	there = asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	l = &Links{To: there}
	how.Dial = l.Dial
	conn, err := here.Connect(Background, "", how)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn, l, here, there
}

// Resumable is hello of a peer that can resume the session.
func Resumable() message.Sync {
	h := Hello()
	h.Features = message.FeatureResume
	return h
}

// Resuming is hello of a peer that wants to resume the session which first began, of which it has
// received so many frames.
func Resuming(first message.Sync, received uint64) message.Sync {
	h := Resumable()
	h.Session, h.Secret, h.Received = first.Session, first.Secret, received
	return h
}

// RawTo connects a rawPeer to a node, over a wire in memory on which things can go wrong, and
// returns what the node says to hello.
func RawTo(t *testing.T, n *asterisque.Node, hello message.Sync) (*RawPeer, message.Sync) {
	t.Helper()
	p, accepted := PipeAccepted(t, n)
	p.Send(hello)
	reply, ok := p.Control().(message.Sync)
	require.True(t, ok)
	<-accepted // the answer is written before the session is among those of n
	return p, reply
}

// RawSession connects a rawPeer to a new node, over a wire in memory, and returns the session.
func RawSession(t *testing.T, opts ...asterisque.Option) (*RawPeer, *asterisque.Session) {
	t.Helper()
	node := NewNode(t, opts...)
	p, _ := RawTo(t, node, Hello())
	return p, node.Sessions()[0]
}

// PipeTo connects a rawPeer to a node as rawTo does, and leaves the handshake to it.
func PipeTo(t *testing.T, n *asterisque.Node) *RawPeer {
	p, _ := PipeAccepted(t, n)
	return p
}

// PipeAccepted is pipeTo, and returns what is closed when Accept has returned.
func PipeAccepted(t *testing.T, n *asterisque.Node) (*RawPeer, <-chan struct{}) {
	a, b := wire.Pipe()
	p := &RawPeer{t, wiretest.Faulty(a, wiretest.Faults{})}
	t.Cleanup(func() { p.W.Close() })
	accepted := make(chan struct{})
	go func() { // ends with the handshake
		defer close(accepted)
		n.Accept(Background, b) // what it returns, the peer sees
	}()
	return p, accepted
}

// NewProxy returns a proxy before a node that listens on TCP loopback.
func NewProxy(t testing.TB, n *asterisque.Node) *wiretest.Proxy {
	t.Helper()
	p, err := wiretest.NewProxy(Serve(t, n)[len("tcp://"):], wiretest.Faults{})
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	return p
}

// Cutter dials TCP connections and cuts the present one.
type Cutter struct {
	URL  string
	Mu   sync.Mutex
	Conn net.Conn // guarded by mu
}

// Dial is a Reconnection.Dial.
func (c *Cutter) Dial(ctx context.Context) (wire.Wire, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.URL[len("tcp://"):])
	if err != nil {
		return nil, err
	}
	c.Mu.Lock()
	c.Conn = conn
	c.Mu.Unlock()
	return wire.FromConn(conn), nil
}

// Cut ends the present connection without a word: what was on its way is lost.
func (c *Cutter) Cut() {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Conn.Close()
}
