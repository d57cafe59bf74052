package testkit

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
)

// Doorkeeper is a node with an Access.Accept that returns a configurable answer.
type Doorkeeper struct {
	Node   *asterisque.Node
	Answer atomic.Pointer[func(asterisque.Peer) (*asterisque.Grant, error)]
}

// NewDoorkeeper returns a Doorkeeper that admits every peer, and closes with the test.
func NewDoorkeeper(t *testing.T, opts ...asterisque.Option) *Doorkeeper {
	k := new(Doorkeeper)
	k.Grants(&asterisque.Grant{}, nil)
	k.Node = asterisque.NewNode(append(opts, asterisque.WithService(EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}),
		asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) { return (*k.Answer.Load())(p) }}))...)
	t.Cleanup(func() { k.Node.Close() })
	return k
}

// Grants sets the answer.
func (k *Doorkeeper) Grants(g *asterisque.Grant, err error) {
	f := func(asterisque.Peer) (*asterisque.Grant, error) { return g, err }
	k.Answer.Store(&f)
}

// Begins starts a session, and waits for the answer to one call.
func (k *Doorkeeper) Begins(t *testing.T) (*RawPeer, message.Sync) {
	p, first := RawTo(t, k.Node, Resumable())
	first.Session, first.Secret = bytes.Clone(first.Session), bytes.Clone(first.Secret)
	p.Echoes(0)
	return p, first
}

// HeldUpAtTheDoor starts a resume of the session that first began. The resume blocks in
// Access.Accept until release is called.
func (k *Doorkeeper) HeldUpAtTheDoor(t *testing.T, first message.Sync) (p *RawPeer, release func()) {
	gate := make(chan struct{})
	answer := *k.Answer.Load()
	held := func(p asterisque.Peer) (*asterisque.Grant, error) { <-gate; return answer(p) }
	k.Answer.Store(&held)
	p = PipeTo(t, k.Node)
	p.Send(Resuming(first, 1))
	synctest.Wait()
	k.Answer.Store(&answer)
	return p, func() { close(gate); synctest.Wait() }
}

// Resumes resumes the session that first began, and returns the answer.
func (k *Doorkeeper) Resumes(t *testing.T, first message.Sync) (*RawPeer, message.Sync) {
	p, again := RawTo(t, k.Node, Resuming(first, 1))
	again.Session, again.Secret = bytes.Clone(again.Session), bytes.Clone(again.Secret)
	return p, again
}
