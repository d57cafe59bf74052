package asterisque_test

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// partGate passes a number of parts, in both directions together, and then blocks the writer of the
// next part.
type partGate struct {
	mu     sync.Mutex
	left   int // parts that may pass; guarded by mu, as all below
	parts  int // that have passed
	opened bool
	open   chan struct{}
	last   func() // what happens to a write that was held up, in place of it; may be nil
	conns  []net.Conn
}

func newPartGate(left int) *partGate { return &partGate{left: left, open: make(chan struct{})} }

// gatedConn is one end of a connection.
type gatedConn struct {
	net.Conn
	gate *partGate
	rest []byte // of a frame that has not left as a whole; belongs to the writer
}

// pair returns a connection that holds nothing.
func (g *partGate) pair() (a, b wire.Wire) {
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

// goOn opens the gate for good.
func (g *partGate) goOn(last func()) {
	g.mu.Lock()
	g.opened, g.last = true, last
	g.mu.Unlock()
	close(g.open)
}

// cut loses the connections.
func (g *partGate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		c.Close()
	}
	g.conns = nil
}

// partedNodes are a client and two servers. The client's calls cross the gate, and so do the calls
// back.
type partedNodes struct {
	t       *testing.T
	gate    *partGate
	client  *asterisque.Node
	servers [2]*asterisque.Node
	conn    *asterisque.Connection
	pool    *pool.Pool
	present int        // the server that is dialled
	ran     [2]int     // how often the call has run, at each server; guarded by mu
	back    chan error // the outcome of a call back
	mu      sync.Mutex
}

func newPartedNodes(t *testing.T, parts int, resumes bool) *partedNodes {
	n := &partedNodes{t: t, gate: newPartGate(parts), back: make(chan error, 1)}
	opts := []asterisque.Option{asterisque.WithAccess(asterisque.Access{PlainCredentials: true})}
	together := asterisque.Resume{For: time.Minute, Records: asterisque.NewRepository(), Elsewhere: n.elsewhere}
	for i := range n.servers {
		own := append(slices.Clone(opts), asterisque.WithService(n.service(i)), asterisque.WithID(string(rune('a'+i))))
		if resumes {
			own = append(own, asterisque.WithResume(together))
		}
		n.servers[i] = asterisque.NewNode(own...)
	}
	if resumes {
		opts = append(opts, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	}
	n.client = asterisque.NewNode(append(slices.Clone(opts), asterisque.WithService(n.service(0)))...)
	t.Cleanup(func() { n.client.Close(); n.servers[0].Close(); n.servers[1].Close() })
	how := asterisque.Reconnection{First: time.Millisecond, Most: 10 * time.Millisecond, Dial: func(context.Context) (wire.Wire, error) {
		n.mu.Lock()
		to := n.servers[n.present]
		n.mu.Unlock()
		a, b := n.gate.pair()
		go to.Accept(background, b) // ends with the handshake
		return a, nil
	}}
	var err error
	n.conn, err = n.client.Connect(background, "", how)
	require.NoError(t, err)
	t.Cleanup(func() { n.conn.Close() })
	return n
}

// elsewhere reaches the server that has a session.
func (n *partedNodes) elsewhere(_ context.Context, r asterisque.SessionRecord, _ asterisque.Peer) (wire.Wire, error) {
	a, b := wire.Pipe()
	go n.servers[r.Node[0]-'a'].AcceptRelayed(background, b) // ends with the handshake
	return a, nil
}

// service takes calls, and counts them.
func (n *partedNodes) service(server int) *asterisque.Service {
	svc := asterisque.NewService()
	count := func() {
		n.mu.Lock()
		n.ran[server]++
		n.mu.Unlock()
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
		_, err := asterisque.SessionOf(ctx).Call(ctx, 5, make([]byte, partedLen))
		n.back <- err
		return nil, err
	})
	return svc
}

// relayed returns a session whose peer passes function 5 on to the servers.
func (n *partedNodes) relayed() *asterisque.Session {
	svc := asterisque.NewService()
	svc.Handle(5, "passes on", func(ctx context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) {
		return n.conn.Call(ctx, 5, params)
	})
	middle, front := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode()
	n.t.Cleanup(func() { middle.Close(); front.Close() })
	a, b := wire.Pipe()
	go middle.Accept(background, b) // ends with the handshake
	s, err := front.Attach(background, a)
	require.NoError(n.t, err)
	return s
}
