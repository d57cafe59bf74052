package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// Agent is a node connected to an exchange. All methods are safe for concurrent use.
type Agent struct {
	cfg    Config // fixed, as all up to end
	node   *asterisque.Node
	outer  *asterisque.Node       // for the session with the exchange
	conn   *asterisque.Connection // maintains that session; set by Join
	urls   *exchangeURLs
	member relayproto.Member
	ctx    context.Context // ends with Close, or when the node is replaced; its cause is the reason
	end    context.CancelCauseFunc

	states   wait.Notice // conn has entered another state
	sessions atomic.Int64

	registration registration // these have their own locks
	watches      nameWatches
	running      sync.WaitGroup
	once         sync.Once // Close
}

// Join makes a node with opts, connects to an exchange, and registers the node there. Then other
// nodes reach it by its name, if the policy of the exchange allows it. It stays registered until
// Close, or Shutdown, and registers again after an outage of the exchange. start bounds the wait,
// which is 30 seconds if it has no deadline. It has no effect on the returned Agent.
//
// Errors are [ErrNameTaken], [ErrUnproved], [asterisque.ErrUnauthorized] if the exchange rejects
// this side, those of connecting when start ends, and those of an invalid cfg or opts.
func Join(start context.Context, cfg Config, opts ...asterisque.Option) (*Agent, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	a := &Agent{cfg: cfg, urls: &exchangeURLs{all: cfg.Exchange, tls: cfg.TLS}, member: cfg.member()}
	a.ctx, a.end = context.WithCancelCause(context.Background())
	a.node = asterisque.NewNode(cfg.inner(opts)...)
	svc := asterisque.NewService()
	relayproto.Accept.Handle(svc, a.accept)
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
	// without the cause of a.ctx: that may be an error of the exchange, which would then appear to
	// have ended the session, too
	life, end := context.WithCancel(context.Background())
	context.AfterFunc(a.ctx, end)
	a.conn, err = a.outer.Connect(life, "", asterisque.ReconnectConfig{
		Background: true, RetryFatal: true, Dial: a.urls.dial,
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

// Node returns the node, for calls without a name, or for its sessions. It is closed with the
// Agent.
func (a *Agent) Node() *asterisque.Node { return a.node }

// ID returns the id of the node.
func (a *Agent) ID() string { return a.cfg.ID }

// Identity returns the identity that the node has proved at its present, or last, registration;
// empty is none.
func (a *Agent) Identity() string { return a.registration.identity() }

// Done returns a channel that is closed when the node has left for good: see Err.
func (a *Agent) Done() <-chan struct{} { return a.ctx.Done() }

// Err returns nil as long as the node is connected to an exchange, or reconnects, and then the
// reason why it does not: [ErrClosed], [ErrReplaced], [ErrNameTaken] or [ErrUnproved]. Sessions
// continue until Close.
func (a *Agent) Err() error { return context.Cause(a.ctx) }

// Shutdown leaves gracefully. It announces that the node drains, so that other nodes send their
// calls elsewhere, and running calls complete ([asterisque.Node.Shutdown]). Then everything is
// closed as by Close. If ctx ends first, Shutdown stops waiting and returns its error.
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
