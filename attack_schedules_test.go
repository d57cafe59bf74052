package asterisque

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// crowd is a group of peers that resume each other's sessions, with right and wrong secrets, in any
// order.
type crowd struct {
	node *Node

	mu    sync.Mutex
	known []message.Sync // answers of the node; guarded by mu
}

// remember stores an answer.
func (c *crowd) remember(s message.Sync) {
	s.Session, s.Secret = slices.Clone(s.Session), slices.Clone(s.Secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) == 64 {
		c.known = slices.Delete(c.known, 0, 1)
	}
	c.known = append(c.known, s)
}

// some returns an answer, mostly a recent one.
func (c *crowd) some() (s message.Sync) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) == 0 {
		return s
	}
	s = c.known[len(c.known)-1-mathrand.N(min(len(c.known), 1+mathrand.N(5)))]
	if mathrand.N(10) == 0 {
		s.Secret = make([]byte, message.SecretSize)
		rand.Read(s.Secret)
	}
	return s
}

// slowWire delays its writes, or fails.
type slowWire struct{ wire.Wire }

func (w *slowWire) WriteFrames(frames [][]byte) error {
	if mathrand.N(6) < 2 {
		time.Sleep(mathrand.N(2 * time.Millisecond)) //nolint:forbidigo // a socket that is full
	}
	if mathrand.N(6) == 0 {
		w.Close()
	}
	return w.Wire.WriteFrames(frames)
}

// visit connects once, and acts at random.
func (c *crowd) visit(ctx context.Context) {
	a, b := wire.Pipe()
	defer a.Close()
	accepted := make(chan struct{})
	// ends with the handshake
	go func() { defer close(accepted); c.node.Accept(ctx, &slowWire{b}) }()
	defer func() { <-accepted }()
	h := message.Sync{Version: message.Version, MaxMessage: 1 << 20, Codecs: []string{"cbor"}, Features: message.FeatureResume}
	h.Node = fmt.Append(nil, mathrand.N(3))
	if was := c.some(); was.Session != nil && mathrand.N(10) > 0 {
		h.Session, h.Secret, h.Received = was.Session, was.Secret, uint64(mathrand.N(6)/5)
		h.Node = was.Node
	}
	if a.WriteFrames([][]byte{h.AppendTo(nil)}) != nil || mathrand.N(5) == 0 {
		return // before it reads the answer
	}
	f, err := a.ReadFrame(1 << 20)
	if err != nil {
		return
	}
	reply, ok := parseSync(f)
	if !ok {
		return
	}

	reply.Node = h.Node
	c.remember(reply)
	c.talk(a)
}

func parseSync(f []byte) (message.Sync, bool) {
	m, err := message.ParseControl(f)
	s, ok := m.(message.Sync)
	return s, ok && err == nil
}

// talk sends something over a Wire, which ends in a random way.
func (c *crowd) talk(a wire.Wire) {
	read := make(chan struct{})
	go func() { // ends with the Wire
		defer close(read)
		for {
			if _, err := a.ReadFrame(1 << 20); err != nil {
				return
			}
		}
	}()
	defer func() { a.Close(); <-read }()
	for range mathrand.N(4) {
		id := uint64(2 * mathrand.N(1000))
		a.WriteFrames([][]byte{(&message.Open{Pipe: id, Function: uint16(1 + mathrand.N(3))}).AppendTo(nil), message.Ping{}.AppendTo(nil)})
	}
	switch mathrand.N(20) {
	case 0:
		a.WriteFrames([][]byte{message.SessionClose{Code: codec.SessionClosed}.AppendTo(nil)})
	case 1:
		a.WriteFrames([][]byte{{0xff}})
	case 2:
		a.WriteFrames([][]byte{message.Ack{Count: 1 << 30}.AppendTo(nil)})
	default:
		time.Sleep(mathrand.N(3 * time.Millisecond)) //nolint:forbidigo // any moment
	}
}

// disturb ends a random session of the node in a random way.
func (c *crowd) disturb() {
	all := c.node.Sessions()
	if len(all) == 0 {
		return
	}
	s := all[mathrand.N(len(all))]
	switch mathrand.N(5) {
	case 0:
		s.Close()
	case 1:
		ctx, stop := context.WithTimeout(context.Background(), time.Millisecond)
		defer stop()
		s.Shutdown(ctx)
	case 2:
		s.calls.Fail(codec.ErrStalled)
	case 3:
		s.calls.Carrier.Lose(codec.ErrUnavailable)
	default:
		c.node.Stats()
		w, _ := s.calls.Carrier.Wire()
		w.Close()
	}
}

// letIn is an Access.Accept that decides at random.
func letIn(ctx context.Context, p Peer) (*Grant, error) {
	if mathrand.N(3) == 0 {
		time.Sleep(mathrand.N(2 * time.Millisecond)) //nolint:forbidigo // a query of a database
	}
	g := &Grant{Subject: p.ID}
	switch mathrand.N(60) {
	case 0:
		return nil, codec.ErrUnauthorized
	case 1:
		return nil, codec.ErrUnavailable
	case 2:
		g.Subject = "somebody"
	case 3:
		g.Inbound.Soft.Bytes, g.Inbound.Hard.Bytes = 32<<20, 64<<20
	}
	return g, nil
}

// TestAttackResume_SessionEnd ends sessions in all ways while their peers resume them.
func TestAttackResume_SessionEnd(t *testing.T) {
	t.Parallel()
	rounds, length := 4, 150*time.Millisecond
	for range rounds {
		svc := NewService()
		svc.Handle(1, "at once", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return []byte{1}, nil })
		svc.Handle(2, "waits", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
		svc.Handle(3, "sends", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			for range 100 {
				if err := p.Send(ctx, make([]byte, 1000)); err != nil {
					return nil, err
				}
			}
			return nil, nil
		})
		n := NewNode(WithService(svc), WithResume(Resume{For: time.Duration(1+mathrand.N(20)) * time.Millisecond}), WithTimeouts(Timeouts{Handshake: 50 * time.Millisecond, Ping: -1}), WithAccess(Access{Accept: letIn}),
			WithAdmission(Admission{HalfOpen: 12, Sessions: 64}))
		c := &crowd{node: n}
		ctx, stop := context.WithTimeout(context.Background(), length)
		var all sync.WaitGroup
		for range 12 {
			all.Go(func() {
				for ctx.Err() == nil {
					c.visit(context.Background())
				}
			})
		}
		all.Go(func() {
			for ctx.Err() == nil {
				c.disturb()
				time.Sleep(200 * time.Microsecond) //nolint:forbidigo // the visitors run
			}
		})
		<-ctx.Done()
		stop()
		n.Close()
		all.Wait()
		n.Close()
		c.nothingIsLeft(t)
	}
}

// nothingIsLeft checks that the node holds no state of its former sessions.
func (c *crowd) nothingIsLeft(t *testing.T) {
	n := c.node
	require.Empty(t, n.Sessions())
	require.Eventually(t, func() bool { // state of handlers ends after the sessions
		held, _ := n.Owners.Held()
		return n.Owners.Len() == 0 && held == 0
	}, waitForWorkers, time.Millisecond)
	n.mu.Lock()
	require.Empty(t, n.resumable)
	require.Empty(t, n.beginning)
	n.mu.Unlock()
	sessions, owners := n.suspended.Counts()
	require.Zero(t, sessions)
	require.Zero(t, owners)
	requireEmpty(t, n.admission)
	store := n.cfg.repository.(*memoryRepository)
	require.Empty(t, store.records)
}
