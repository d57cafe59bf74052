package exchange

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
	"github.com/asterisque-go/asterisque/wire"
)

// ErrClosed says that the exchange was closed.
var ErrClosed = errors.New("exchange: closed")

// Exchange relays sessions between nodes that connect to it. All methods are safe for concurrent
// use.
type Exchange struct {
	cfg    Config // these are fixed
	policy policy
	node   *asterisque.Node
	nodes  *nodes
	domain *domain // nil: there is no cluster
	crew   crew
	ctx    context.Context // ends with Close
	end    context.CancelCauseFunc

	answering room          // questions of other domains
	sessions  room          // those that are relayed
	relayed   atomic.Uint64 // those that ever were
	refused   atomic.Uint64 // those to a node that is not there, or must not be reached
}

// New returns an exchange that serves nobody yet: see [Exchange.Serve]. The error says what is
// wrong with cfg; that of a rule names it. With a Cluster it may be a [*ClaimedError], or one of
// NATS, which has 10 seconds.
func New(cfg Config) (*Exchange, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	x := &Exchange{cfg: cfg, policy: cfg.Policy, nodes: newNodes()}
	x.sessions.most = int64(cfg.Sessions)
	x.ctx, x.end = context.WithCancelCause(context.Background())
	if cfg.Cluster != nil {
		if err := x.join(); err != nil {
			return nil, err
		}
	}
	svc := asterisque.NewService()
	outer.Register.Handle(svc, x.register)
	outer.Members.Handle(svc, x.members)
	outer.Dial.Handle(svc, x.dial)
	x.node = asterisque.NewNode(cfg.node(svc)...)
	if err := x.node.Check(); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// join lets the exchange take part in its cluster.
func (x *Exchange) join() (err error) {
	ctx, cancel := context.WithTimeout(x.ctx, 2*patience)
	defer cancel()
	if x.domain, err = newDomain(ctx, x.cfg.Cluster, x.cfg.ID); err != nil {
		return err
	}
	x.answering.most = answering
	x.nodes.follow = func(ctx context.Context, name string, g *group) {
		x.crew.begin(func() { x.follow(ctx, name, g) }) // ends with ctx
		x.crew.begin(func() { x.search(ctx, name, g) }) // the same
	}
	if err := x.findable(); err != nil {
		x.domain.close()
		return err
	}
	x.crew.begin(func() { x.domain.watchClaim(x.ctx, x.cfg.Logger) }) // ends with x.ctx
	return nil
}

// ID returns what nodes see of the exchange.
func (x *Exchange) ID() string { return x.cfg.ID }

// Serve lets nodes connect that ln accepts, until life ends or the exchange is closed, and then
// closes ln and returns nil. The error is that of a listener that failed. Several listeners may be
// served at once.
func (x *Exchange) Serve(life context.Context, ln wire.Listener) error { return x.node.Serve(life, ln) }

// ListenAndServe listens at a URL, such as "tls://:5330", and serves it as [Exchange.Serve] does.
func (x *Exchange) ListenAndServe(life context.Context, url string) error {
	return x.node.ListenAndServe(life, url)
}

// Shutdown tells all nodes to connect to another exchange, and lets no new session begin. The nodes
// then see off the sessions that are relayed: those that can be resumed go on through another
// exchange, those that make no call end, and calls of the others may finish. Shutdown waits for
// that, up to 30 seconds (Timeouts.Drain of the options) and until ctx ends; then all is closed.
// The error is that of ctx, or says what was cut.
func (x *Exchange) Shutdown(ctx context.Context) error {
	err := x.node.Shutdown(ctx)
	x.Close()
	return err
}

// Close ends all at once. Nodes connect to another exchange, or to this one when it is started
// again. Repeated calls return nil.
func (x *Exchange) Close() error {
	x.end(ErrClosed)
	if x.domain != nil {
		x.domain.close()
	}
	err := x.node.Close()
	x.crew.wait()
	return err
}

// Stats are the numbers of an exchange.
type Stats struct {
	Nodes    int    `json:"nodes"`    // that are registered
	Names    int    `json:"names"`    // that they have
	Sessions int    `json:"sessions"` // that are relayed now
	Relayed  uint64 `json:"relayed"`  // sessions that ever were
	Refused  uint64 `json:"refused"`  // sessions to nodes that were not there, or not to be reached

	// Claimed says that another exchange has the same id, which could not be reached when this one
	// was made; nil: none is known. It is looked for twice a minute.
	Claimed *ClaimedError `json:"claimed,omitempty"`

	// Node is what the node holds and carries that the exchange is to those which connect.
	Node asterisque.NodeStats `json:"node"`
}

// Stats returns the numbers of the exchange.
func (x *Exchange) Stats() Stats {
	s := Stats{
		Sessions: int(x.sessions.used.Load()),
		Relayed:  x.relayed.Load(), Refused: x.refused.Load(), Node: x.node.Stats(),
	}
	s.Nodes, s.Names = x.nodes.count()
	if x.domain != nil {
		s.Claimed = x.domain.claimed.Load()
	}
	return s
}
