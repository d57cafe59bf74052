package testkit

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/stretchr/testify/require"
)

// partGate passes a number of parts, in both directions together, and then blocks the writer of the
// next part.
type partGate struct {
	mu     sync.Mutex
	left   int // parts that may still pass; guarded by mu, as all below
	parts  int // parts that have passed
	opened bool
	open   chan struct{}
	last   func() // called after the release of a blocked write; may be nil
	conns  []net.Conn
}

func newPartGate(left int) *partGate { return &partGate{left: left, open: make(chan struct{})} }

// gatedConn is one end of a connection.
type gatedConn struct {
	net.Conn
	gate *partGate
	rest []byte // of an incomplete frame; belongs to the writer
}

// Pair returns a connection without a buffer.
func (g *partGate) Pair() (a, b wire.Wire) {
	c, d := net.Pipe()
	g.mu.Lock()
	g.conns = append(g.conns, c)
	g.mu.Unlock()
	return wire.FromConn(&gatedConn{Conn: c, gate: g}), wire.FromConn(&gatedConn{Conn: d, gate: g})
}

func (c *gatedConn) Write(b []byte) (int, error) {
	c.rest = append(c.rest, b...)
	parts := 0
	for len(c.rest) >= 4 && len(c.rest) >= 4+int(binary.BigEndian.Uint32(c.rest)) {
		frame := c.rest[4 : 4+binary.BigEndian.Uint32(c.rest)]
		c.rest = c.rest[4+len(frame):]
		if kind, _ := message.TypeOf(frame); kind == message.PartType {
			parts++
		}
	}
	if parts > 0 {
		c.gate.pass(parts)
	}
	return c.Conn.Write(b)
}

// pass waits until parts may pass.
func (g *partGate) pass(parts int) {
	g.mu.Lock()
	if g.opened || g.left >= parts {
		g.left -= parts
		g.parts += parts
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	<-g.open
	g.mu.Lock()
	last := g.last
	g.last = nil
	g.parts += parts
	g.mu.Unlock()
	if last != nil {
		last()
	}
}

// GoOn opens the gate permanently.
func (g *partGate) GoOn(last func()) {
	g.mu.Lock()
	g.opened, g.last = true, last
	g.mu.Unlock()
	close(g.open)
}

// Cut loses the connections.
func (g *partGate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

// PartedNodes are a client and two servers. The calls of the client, and the calls back, pass
// through the gate.
type PartedNodes struct {
	T       *testing.T
	Gate    *partGate
	Client  *asterisque.Node
	Servers [2]*asterisque.Node
	Conn    *asterisque.Connection
	Pool    *pool.Pool
	present int        // the server to dial
	Ran     [2]int     // executions of the call at each server; guarded by mu
	Back    chan error // the outcome of a call back
	Mu      sync.Mutex
}

// NewPartedNodes returns PartedNodes with a gate that passes the given number of parts.
func NewPartedNodes(t *testing.T, parts int, resumes bool) *PartedNodes {
	n := &PartedNodes{T: t, Gate: newPartGate(parts), Back: make(chan error, 1)}
	opts := []asterisque.Option{asterisque.WithAccess(asterisque.Access{PlainCredentials: true})}
	together := asterisque.Resume{For: time.Minute, Records: asterisque.NewRepository(), Elsewhere: n.elsewhere}
	for i := range n.Servers {
		own := append(slices.Clone(opts), asterisque.WithService(n.service(i)), asterisque.WithID(string(rune('a'+i))))
		if resumes {
			own = append(own, asterisque.WithResume(together))
		}
		n.Servers[i] = asterisque.NewNode(own...)
	}
	if resumes {
		opts = append(opts, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	}
	n.Client = asterisque.NewNode(append(slices.Clone(opts), asterisque.WithService(n.service(0)))...)
	t.Cleanup(func() { n.Client.Close(); n.Servers[0].Close(); n.Servers[1].Close() })
	how := asterisque.ReconnectConfig{First: time.Millisecond, Most: 10 * time.Millisecond, Dial: func(context.Context) (wire.Wire, error) {
		n.Mu.Lock()
		to := n.Servers[n.present]
		n.Mu.Unlock()
		a, b := n.Gate.Pair()
		go to.Accept(Background, b) // ends with the handshake
		return a, nil
	}}
	var err error
	n.Conn, err = n.Client.Connect(Background, "", how)
	require.NoError(t, err)
	t.Cleanup(func() { n.Conn.Close() })
	return n
}

// elsewhere connects to the server that has a session.
func (n *PartedNodes) elsewhere(_ context.Context, r asterisque.SessionRecord, _ asterisque.Peer) (wire.Wire, error) {
	a, b := wire.Pipe()
	go n.Servers[r.Node[0]-'a'].AcceptRelayed(Background, b) // ends with the handshake
	return a, nil
}

// service serves calls, and counts them.
func (n *PartedNodes) service(server int) *asterisque.Service {
	svc := asterisque.NewService()
	count := func() {
		n.Mu.Lock()
		n.Ran[server]++
		n.Mu.Unlock()
	}
	svc.Handle(5, "takes", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		count()
		return []byte{byte(len(params) % 251)}, nil
	})
	svc.Handle(6, "streams", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		count()
		for len(params) == 0 {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			b.Release()
		}
		return nil, p.Send(ctx, []byte("here"))
	})
	svc.Handle(7, "calls back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		_, err := asterisque.SessionOf(ctx).Call(ctx, 5, make([]byte, PartedLen))
		n.Back <- err
		return nil, err
	})
	return svc
}

// Relayed returns a session with a peer that forwards function 5 to the servers.
func (n *PartedNodes) Relayed() *asterisque.Session {
	svc := asterisque.NewService()
	svc.Handle(5, "passes on", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		return n.Conn.Call(ctx, 5, params)
	})
	middle, front := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode()
	n.T.Cleanup(func() { middle.Close(); front.Close() })
	a, b := wire.Pipe()
	go middle.Accept(Background, b) // ends with the handshake
	s, err := front.Attach(Background, a)
	require.NoError(n.T, err)
	return s
}

// Moves makes the client dial the other server.
func (n *PartedNodes) Moves() {
	n.Mu.Lock()
	n.present = 1
	n.Mu.Unlock()
}

// The messages of these tests are sent in FourParts parts.
const (
	FourParts = 4
	PartedLen = 200_000
)
