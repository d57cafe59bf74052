package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// again is the delay after a failed registration before the next attempt.
const again = 200 * time.Millisecond

// registration is the present registration of the node.
type registration struct {
	changed wait.Notice

	mu       sync.Mutex
	session  *asterisque.Session // session of the registration; guarded by mu, as all below
	proved   string              // the identity there, or the last one
	draining bool
}

func (r *registration) identity() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.proved
}

// set stores the session of the registration; nil: none.
func (r *registration) set(s *asterisque.Session, w relayproto.Welcome) {
	r.mu.Lock()
	if r.session = s; s != nil {
		r.proved = w.Identity
	}
	r.mu.Unlock()
	r.changed.Signal()
}

// drain announces that the node drains.
func (r *registration) drain() {
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	r.changed.Signal()
}

// state returns the state of the node.
func (r *registration) state() relayproto.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.draining {
		return relayproto.Draining
	}
	return relayproto.Present
}

// await returns the session in which the node is registered, once it is.
func (a *Agent) await(ctx context.Context) (*asterisque.Session, error) {
	r := &a.registration
	for {
		changed := r.changed.Next()
		r.mu.Lock()
		s := r.session
		r.mu.Unlock()
		if s != nil {
			return s, nil
		}
		select {
		case <-changed:
		case <-a.ctx.Done():
			return nil, a.Err()
		case <-ctx.Done():
			return nil, a.away(context.Cause(ctx))
		}
	}
}

// away wraps the error of a missing exchange.
func (a *Agent) away(err error) error {
	if o := a.conn.Outage(); o != nil {
		return fmt.Errorf("no exchange has taken the node yet: %w: %w", err, o)
	}
	return fmt.Errorf("no exchange has taken the node yet: %w", err)
}

// look is the interval at which Join checks whether an exchange has rejected this side.
const look = 20 * time.Millisecond

// awaitRegistered waits until the node is registered for the first time, or is rejected.
func (a *Agent) awaitRegistered(start context.Context) error {
	start, end := context.WithCancel(start)
	defer end()
	over := make(chan error, 1)
	go func() { // ends with start
		_, err := a.await(start)
		over <- err
	}()
	again := time.NewTicker(look)
	defer again.Stop()
	for {
		select {
		case err := <-over:
			return err
		case <-again.C:
		}
		if o := a.conn.Outage(); o != nil && errors.Is(o.Why, asterisque.ErrUnauthorized) {
			end()
			<-over
			return o.Why
		}
	}
}

// keepRegistered registers the node in each new session with an exchange.
func (a *Agent) keepRegistered() {
	for a.ctx.Err() == nil {
		changed := a.states.Next()
		if s := a.conn.Session(); s != nil && a.conn.Ready() {
			err := a.register(s)
			a.registration.set(nil, relayproto.Welcome{})
			a.notRegistered(s, err)
			wait.HoldOff(a.ctx, again)
			continue
		}
		select {
		case <-changed:
		case <-a.ctx.Done():
		}
	}
}

// notRegistered handles the end of a registration with err.
func (a *Agent) notRegistered(s *asterisque.Session, err error) {
	if why, refused := told(err); refused {
		a.end(why)
		return
	}
	if errors.Is(err, relayproto.ErrGoes) {
		a.running.Go(func() { a.seeOff(s) }) // ends with s, which the exchange ends
	}
	a.node.Logger().Info("agent: registered no more", "exchange", s.Peer(), "error", err)
}

// register registers the node in a session until the registration ends, and returns the reason.
func (a *Agent) register(s *asterisque.Session) error {
	m := a.member
	m.State = a.registration.state()
	var reading sync.WaitGroup
	defer reading.Wait()
	ctx, end := context.WithCancelCause(a.ctx)
	defer end(nil) // for the goroutine, too
	call, err := relayproto.Register.Open(ctx, s, relayproto.Registration{Member: m})
	if err != nil {
		return err
	}
	w, err := call.Recv(ctx)
	if err != nil {
		return err
	}
	a.registration.set(s, w)
	reading.Go(func() { // ends with ctx, or with the call
		_, err := call.Recv(ctx)
		if err == nil || err == io.EOF {
			err = asterisque.ErrUnavailable.Withf("the exchange has ended the registration")
		}
		end(err)
	})
	return a.tellStates(ctx, call, m.State)
}

// tellStates sends each change of the node's state to the exchange, until ctx ends.
func (a *Agent) tellStates(ctx context.Context, call *asterisque.StreamCall[relayproto.State, relayproto.Welcome, struct{}], last relayproto.State) error {
	for {
		changed := a.registration.changed.Next()
		if s := a.registration.state(); s != last {
			last = s
			if err := call.Send(ctx, s); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
