package asterisque_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
)

// swallow reads what comes until the wire ends.
func (p *rawPeer) swallow() {
	for {
		if _, err := p.w.ReadFrame(1 << 20); err != nil {
			return
		}
	}
}

// untilAllowed reads up to the next Allow, or the end of the session.
func (p *rawPeer) untilAllowed() (bye message.SessionClose) {
	p.t.Helper()
	for {
		switch c := p.control().(type) {
		case message.Allow:
			return bye
		case message.SessionClose:
			return c
		}
	}
}

// flood sends pairs of an Open and the Close that gives it up at once, reads whatever comes, and
// returns when the session has read them all.
func (p *rawPeer) flood(pairs int, first uint64, open message.Open) {
	p.t.Helper()
	read := make(chan error, 1)
	go func() { // ends with the answer to the Ping, or with the Wire
		for {
			f, err := p.w.ReadFrame(1 << 20)
			if err != nil {
				read <- err
				return
			}
			if c, err := message.ParseControl(f); err == nil && c == (message.Pong{N: 7}) {
				read <- nil
				return
			}
		}
	}()
	var batch []byte
	add := func(m interface{ AppendTo([]byte) []byte }) {
		at := len(batch)
		batch = m.AppendTo(append(batch, 0, 0, 0, 0))
		binary.BigEndian.PutUint32(batch[at:], uint32(len(batch)-at-4))
	}
	for i := range pairs {
		open.Pipe = first + 2*uint64(i)
		add(&open)
		add(&message.Close{Pipe: open.Pipe, Abort: codec.ErrCanceled})
		if len(batch) > 32<<10 || i == pairs-1 {
			require.NoError(p.t, p.w.(wire.BatchWriter).WriteBatch(batch))
			batch = batch[:0]
		}
	}
	p.send(message.Ping{N: 7})
	require.NoError(p.t, <-read)
}

// alive lets p live: it answers Pings, sends one each interval itself, and reads whatever comes,
// until the wire ends. It returns how many frames and how many Pings have come.
func (p *rawPeer) alive(each time.Duration) (heard, pings *atomic.Int64) {
	heard, pings = new(atomic.Int64), new(atomic.Int64)
	over := make(chan struct{})
	var mu sync.Mutex // held by who writes
	write := func(c message.Control) {
		mu.Lock()
		defer mu.Unlock()
		p.w.WriteFrames([][]byte{c.AppendTo(nil)}) // an error is that of a wire which has ended
	}
	go func() { // ends with the wire
		defer close(over)
		for {
			frame, err := p.w.ReadFrame(1 << 20)
			if err != nil {
				return
			}
			heard.Add(1)
			if c, err := message.ParseControl(frame); err == nil {
				if ping, ok := c.(message.Ping); ok {
					pings.Add(1)
					write(message.Pong{N: ping.N})
				}
			}
		}
	}()
	go func() { // ends with the one before
		for tick := time.NewTicker(each); ; {
			select {
			case <-tick.C:
				write(message.Ping{})
			case <-over:
				tick.Stop()
				return
			}
		}
	}()
	return heard, pings
}

// attackers connects so many raw connections without a buffer to a node, says hello over each, and
// returns the sessions that the node has with them.
func attackers(t *testing.T, n int, node *asterisque.Node, hello message.Sync) (conns []net.Conn, sessions []*asterisque.Session) {
	t.Helper()
	for range n {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		accepts := make(chan *asterisque.Session, 1)
		go func() { s, _ := node.Accept(background, wire.FromConn(there)); accepts <- s }()
		p := &rawPeer{t, wire.FromConn(here)}
		p.send(hello)
		require.IsType(t, message.Sync{}, p.control())
		conns, sessions = append(conns, here), append(sessions, <-accepts)
	}
	return conns, sessions
}

// stuckPeer returns a session over a Wire in memory whose other side has completed the handshake
// and reads nothing. It is not given up for its silence.
func stuckPeer(t *testing.T, opts ...asterisque.Option) (*rawPeer, *asterisque.Session) {
	t.Helper()
	return stuckPeerThatSays(t, hello(), append([]asterisque.Option{asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1})}, opts...)...)
}

// stuckPeerThatSays is stuckPeer with a Sync of its own.
func stuckPeerThatSays(t *testing.T, hello message.Sync, opts ...asterisque.Option) (*rawPeer, *asterisque.Session) {
	t.Helper()
	p, session := rawPeerOf(t, (*asterisque.Node).Accept, opts)
	p.send(hello)
	require.IsType(t, message.Sync{}, p.control())
	return p, <-session
}

// rawPeerOf returns a peer in the hands of the test, and where the session of the other side comes
// once they have shaken hands: join, of a node with opts, begins that.
func rawPeerOf(t *testing.T, join func(*asterisque.Node, context.Context, wire.Wire) (*asterisque.Session, error), opts []asterisque.Option) (*rawPeer, <-chan *asterisque.Session) {
	t.Helper()
	node := asterisque.NewNode(opts...)
	a, b := wire.Pipe()
	t.Cleanup(func() { a.Close(); node.Close() })
	session := make(chan *asterisque.Session, 1)
	go func() { // ends with the handshake, or with the node
		s, err := join(node, background, b)
		if err != nil {
			t.Error(err)
		}
		session <- s
	}()
	return &rawPeer{t, a}, session
}
