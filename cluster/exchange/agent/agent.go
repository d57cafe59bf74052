package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// Agent is a node at an exchange. All methods are safe for concurrent use.
type Agent struct {
	cfg    Config // these are fixed
	node   *asterisque.Node
	outer  *asterisque.Node       // has the session with the exchange
	conn   *asterisque.Connection // keeps that session; set by Join
	urls   *urls
	member outer.Member
	ctx    context.Context // ends with Close, or when the node is replaced; its cause is why
	end    context.CancelCauseFunc

	states   wait.Notice // of conn: there is another one
	sessions atomic.Int64

	registration registration // these lock themselves
	watches      watches
	running      sync.WaitGroup
	once         sync.Once // Close
}

// Join makes a node with opts, connects to an exchange, and registers the node there: then others
// reach it by its name, if the policy of the exchange lets them. It stays registered until Close,
// or Shutdown, also when the exchange is away for a while. start ends the wait, which lasts for 30
// seconds if it has no deadline, and has no effect on what is returned.
//
// Errors are [ErrNameTaken], [ErrUnproved], [asterisque.ErrUnauthorized] if the exchange does not
// let this side in, those of connecting when start ends, and what is wrong with cfg or opts.
func Join(start context.Context, cfg Config, opts ...asterisque.Option) (*Agent, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, urls: &urls{all: cfg.Exchange, tls: cfg.TLS}, member: cfg.member()}
	a.ctx, a.end = context.WithCancelCause(context.Background())
	a.node = asterisque.NewNode(cfg.inner(opts)...)
	svc := asterisque.NewService()
	outer.Accept.Handle(svc, a.accept)
	a.outer = asterisque.NewNode(cfg.outer(svc, a.node)...)
	if _, ok := start.Deadline(); !ok {
		var cancel context.CancelFunc
		start, cancel = context.WithTimeout(start, joinTime)
		defer cancel()
	}
	if err := a.join(start); err != nil {
		a.Close()
		return nil, fmt.Errorf("agent: joining the exchange: %w", err)
	}
	return a, nil
}

func (a *Agent) join(start context.Context) (err error) {
	for _, n := range []*asterisque.Node{a.node, a.outer} {
		if err := n.Check(); err != nil {
			return err
		}
	}
	// not with the cause of a.ctx: that may be what the exchange has said, which would then seem to
	// have ended the session, too
	life, end := context.WithCancel(context.Background())
	context.AfterFunc(a.ctx, end)
	a.conn, err = a.outer.Connect(life, "", asterisque.Reconnection{
		Background: true, Persist: true, Dial: a.urls.dial,
		OnState: func(_ *asterisque.Connection, s asterisque.ConnectionState, _ error) {
			if s == asterisque.Connected {
				a.urls.good()
			}
			a.states.Signal()
		},
	})
	if err != nil {
		return err
	}
	a.running.Go(a.keepRegistered) // ends with a.ctx
	return a.awaitRegistered(start)
}

// Node returns the node, to make calls that name no one, or to look at its sessions. It is closed
// with the Agent.
func (a *Agent) Node() *asterisque.Node { return a.node }

// ID returns the id of the node.
func (a *Agent) ID() string { return a.cfg.ID }

// Identity returns the identity that the node has proved to the exchange where it is registered, or
// was last; empty is none.
func (a *Agent) Identity() string { return a.registration.identity() }

// Done returns a channel that is closed when the node is at no exchange any more: see Err.
func (a *Agent) Done() <-chan struct{} { return a.ctx.Done() }

// Err returns nil as long as the node is at an exchange, or connects to one again, and then why it
// does not: [ErrClosed], [ErrReplaced], [ErrNameTaken] or [ErrUnproved]. Sessions go on until
// Close.
func (a *Agent) Err() error { return context.Cause(a.ctx) }

// Shutdown leaves in good order: others see that the node drains, and send their calls elsewhere,
// what runs here goes on to its end ([asterisque.Node.Shutdown]), and then all is closed as by
// Close. ctx ends the wait; its error is returned then.
func (a *Agent) Shutdown(ctx context.Context) error {
	a.registration.drain()
	err := a.node.Shutdown(ctx)
	a.Close()
	return err
}

// Close leaves at once, and closes the node with its sessions. Repeated calls return nil.
func (a *Agent) Close() error {
	a.once.Do(func() {
		a.end(ErrClosed)
		a.watches.close()
		a.node.Close()
		a.outer.Close()
		a.running.Wait()
	})
	return nil
}
