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

// Links dials wires in memory to one node after the other, and injects faults. It suits synctest.
type Links struct {
	Mu    sync.Mutex
	To    *asterisque.Node // guarded by mu, as all below
	Fail  func() error     // returns the error of dialling; nil: no error
	Last  *wiretest.Wire
	Dials []time.Time
}

// Dial implements ReconnectConfig.Dial.
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

// HalfOpen makes the present wire lose everything that is sent.
func (l *Links) HalfOpen() {
	l.Mu.Lock()
	w := l.Last
	l.Mu.Unlock()
	w.HalfOpen()
}

// FailWith makes dialling fail with err from now on, or succeed if err is nil.
func (l *Links) FailWith(err error) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Fail = func() error { return err }
}

// LeadTo makes dialling reach another node from now on.
func (l *Links) LeadTo(n *asterisque.Node) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.To = n
}

// Attempts returns the time between each attempt to dial and the one before.
func (l *Links) Attempts() (waits []time.Duration) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for i, at := range l.Dials[1:] {
		waits = append(waits, at.Sub(l.Dials[i]))
	}
	return waits
}

// Link connects two new nodes, of which the second offers svc. Everything ends with the test.
func Link(t *testing.T, svc *asterisque.Service, how asterisque.ReconnectConfig, opts ...asterisque.Option) (conn *asterisque.Connection, l *Links, here, there *asterisque.Node) {
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

// Resumable is Hello of a peer that can resume the session.
func Resumable() message.Sync {
	h := Hello()
	h.Features = message.FeatureResume
	return h
}

// Resuming is Hello of a peer that resumes the session of first, after it has received the given
// number of frames.
func Resuming(first message.Sync, received uint64) message.Sync {
	h := Resumable()
	h.Session, h.Secret, h.Received = first.Session, first.Secret, received
	return h
}

// RawTo connects a RawPeer to a node, over a faulty wire in memory, and returns the answer of the
// node to hello.
func RawTo(t *testing.T, n *asterisque.Node, hello message.Sync) (*RawPeer, message.Sync) {
	t.Helper()
	p, accepted := PipeAccepted(t, n)
	p.Send(hello)
	reply, ok := p.Control().(message.Sync)
	require.True(t, ok)
	<-accepted // the answer is written before the session is among those of n
	return p, reply
}

// RawSession connects a RawPeer to a new node over a wire in memory, and returns the session.
func RawSession(t *testing.T, opts ...asterisque.Option) (*RawPeer, *asterisque.Session) {
	t.Helper()
	node := NewNode(t, opts...)
	p, _ := RawTo(t, node, Hello())
	return p, node.Sessions()[0]
}

// PipeTo connects a RawPeer to a node as RawTo does, without the handshake.
func PipeTo(t *testing.T, n *asterisque.Node) *RawPeer {
	p, _ := PipeAccepted(t, n)
	return p
}

// PipeAccepted is PipeTo with a channel that is closed when Accept has returned.
func PipeAccepted(t *testing.T, n *asterisque.Node) (*RawPeer, <-chan struct{}) {
	a, b := wire.Pipe()
	p := &RawPeer{t, wiretest.Faulty(a, wiretest.Faults{})}
	t.Cleanup(func() { p.W.Close() })
	accepted := make(chan struct{})
	go func() { // ends with the handshake
		defer close(accepted)
		n.Accept(Background, b) // the peer sees the result
	}()
	return p, accepted
}

// NewProxy returns a proxy in front of a node that listens on TCP loopback.
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

// Dial implements ReconnectConfig.Dial.
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

// Cut resets the present connection: data in transit is lost.
func (c *Cutter) Cut() {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	c.Conn.(*net.TCPConn).SetLinger(0)
	c.Conn.Close()
}
