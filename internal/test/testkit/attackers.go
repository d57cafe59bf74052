package testkit

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

// Swallow reads and discards frames until the wire ends.
func (p *RawPeer) Swallow() {
	for {
		if _, err := p.W.ReadFrame(1 << 20); err != nil {
			return
		}
	}
}

// UntilCredit reads up to a Credit for a pipe with a limit of at least total, or the end of the
// session.
func (p *RawPeer) UntilCredit(total uint64) (bye message.SessionClose) {
	p.T.Helper()
	for {
		switch c := p.Control().(type) {
		case message.Credit:
			if !c.Opens && c.Limit >= total {
				return bye
			}
		case message.SessionClose:
			return c
		}
	}
}

// Flood sends pairs of an Open and the Close that cancels it at once. It reads and discards all
// frames, and returns when the session has read all pairs.
func (p *RawPeer) Flood(pairs int, first uint64, open message.Open) {
	p.T.Helper()
	read := make(chan error, 1)
	go func() { // ends with the answer to the Ping, or with the Wire
		for {
			f, err := p.W.ReadFrame(1 << 20)
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
			require.NoError(p.T, p.W.(wire.BatchWriter).WriteBatch(batch))
			batch = batch[:0]
		}
	}
	p.Send(message.Ping{N: 7})
	require.NoError(p.T, <-read)
}

// Alive keeps p alive: it answers Pings, sends one each interval itself, and reads all frames until
// the wire ends. It returns the numbers of received frames and of received Pings.
func (p *RawPeer) Alive(each time.Duration) (heard, pings *atomic.Int64) {
	heard, pings = new(atomic.Int64), new(atomic.Int64)
	over := make(chan struct{})
	var mu sync.Mutex // held during a write
	write := func(c message.Control) {
		mu.Lock()
		defer mu.Unlock()
		p.W.WriteFrames([][]byte{c.AppendTo(nil)}) // fails only for a wire that has ended
	}
	go func() { // ends with the wire
		defer close(over)
		for {
			frame, err := p.W.ReadFrame(1 << 20)
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

// Attackers connects n raw connections without a buffer to a node, sends hello over each, and
// returns the sessions of the node with them.
func Attackers(t *testing.T, n int, node *asterisque.Node, hello message.Sync) (conns []net.Conn, sessions []*asterisque.Session) {
	t.Helper()
	for range n {
		here, there := net.Pipe()
		t.Cleanup(func() { here.Close() })
		accepts := make(chan *asterisque.Session, 1)
		go func() { s, _ := node.Accept(Background, wire.FromConn(there)); accepts <- s }()
		p := &RawPeer{t, wire.FromConn(here)}
		p.Send(hello)
		require.IsType(t, message.Sync{}, p.Control())
		conns, sessions = append(conns, here), append(sessions, <-accepts)
	}
	return conns, sessions
}

// StuckPeer returns a session over a Wire in memory with a peer that has completed the handshake
// and reads nothing. The session does not end because of the peer's silence.
func StuckPeer(t *testing.T, opts ...asterisque.Option) (*RawPeer, *asterisque.Session) {
	t.Helper()
	return StuckPeerThatSays(t, Hello(), append([]asterisque.Option{asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1})}, opts...)...)
}

// StuckPeerThatSays is StuckPeer with a given Sync.
func StuckPeerThatSays(t *testing.T, hello message.Sync, opts ...asterisque.Option) (*RawPeer, *asterisque.Session) {
	t.Helper()
	p, session := RawPeerOf(t, (*asterisque.Node).Accept, opts)
	p.Send(hello)
	require.IsType(t, message.Sync{}, p.Control())
	return p, <-session
}

// RawPeerOf returns a peer that the test controls, and a channel for the session of the other side
// after the handshake. join starts the session on a node with opts.
func RawPeerOf(t *testing.T, join func(*asterisque.Node, context.Context, wire.Wire) (*asterisque.Session, error), opts []asterisque.Option) (*RawPeer, <-chan *asterisque.Session) {
	t.Helper()
	node := asterisque.NewNode(opts...)
	a, b := wire.Pipe()
	t.Cleanup(func() { a.Close(); node.Close() })
	session := make(chan *asterisque.Session, 1)
	go func() { // ends with the handshake, or with the node
		s, err := join(node, Background, b)
		if err != nil {
			t.Error(err)
		}
		session <- s
	}()
	return &RawPeer{t, a}, session
}
