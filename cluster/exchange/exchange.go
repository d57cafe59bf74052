package exchange

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/wire"
)

// ErrClosed reports that the exchange was closed.
var ErrClosed = errors.New("exchange: closed")

// Exchange relays sessions between nodes that connect to it. All methods are safe for concurrent
// use.
type Exchange struct {
	cfg        Config // fixed, as all up to end but goroutines
	policy     policy
	node       *asterisque.Node
	nodes      *nodeRegistry
	domain     *domain // nil: no cluster
	goroutines goroutineGroup
	ctx        context.Context // ends with Close
	end        context.CancelCauseFunc

	answerSlots semaphore     // running answers for other domains
	sessions    semaphore     // relayed sessions
	relayed     atomic.Uint64 // total number of relayed sessions
	refused     atomic.Uint64 // sessions to absent or forbidden nodes
}

// New returns an exchange without listeners: see [Exchange.Serve]. The error reports an invalid
// cfg, and names an invalid rule. With a Cluster it may be a [*ClaimedError], or one of NATS, which
// has 10 seconds.
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
	relayproto.Register.Handle(svc, x.register)
	relayproto.Members.Handle(svc, x.members)
	relayproto.Dial.Handle(svc, x.dial)
	x.node = asterisque.NewNode(cfg.node(svc)...)
	if err := x.node.Check(); err != nil {
		x.Close()
		return nil, err
	}
	return x, nil
}

// join connects the exchange to its cluster.
func (x *Exchange) join() (err error) {
	ctx, cancel := context.WithTimeout(x.ctx, 2*patience)
	defer cancel()
	if x.domain, err = newDomain(ctx, x.cfg.Cluster, x.cfg.ID); err != nil {
		return err
	}
	x.answerSlots.most = answering
	x.nodes.follow = func(ctx context.Context, name string, g *nodeGroup) {
		x.goroutines.begin(func() { x.follow(ctx, name, g) }) // ends with ctx
		x.goroutines.begin(func() { x.search(ctx, name, g) }) // likewise
	}
	if err := x.findable(); err != nil {
		x.domain.close()
		return err
	}
	x.goroutines.begin(func() { x.domain.watchClaim(x.ctx, x.cfg.Logger) }) // ends with x.ctx
	return nil
}

// ID returns the id of the exchange, as seen by nodes.
func (x *Exchange) ID() string { return x.cfg.ID }

// Serve accepts nodes from ln, until life ends or the exchange is closed, and then closes ln and
// returns nil. The error is that of a listener that failed. Several listeners may be served at
// once.
func (x *Exchange) Serve(life context.Context, ln wire.Listener) error { return x.node.Serve(life, ln) }

// ListenAndServe listens at a URL, such as "tls://:5330", and serves it as [Exchange.Serve] does.
func (x *Exchange) ListenAndServe(life context.Context, url string) error {
	return x.node.ListenAndServe(life, url)
}

// Shutdown makes all nodes connect to another exchange, and rejects new sessions. The nodes then
// drain the relayed sessions: resumable ones continue through another exchange, those without calls
// end, and the remaining ones complete their calls. Shutdown waits for this, up to 30 seconds
// (Timeouts.Drain of the options) and until ctx ends; then everything is closed. The error is that
// of ctx, or reports the interrupted sessions.
func (x *Exchange) Shutdown(ctx context.Context) error {
	err := x.node.Shutdown(ctx)
	x.Close()
	return err
}

// Close closes all sessions at once. Nodes connect to another exchange, or to this one when it is
// restarted. Repeated calls return nil.
func (x *Exchange) Close() error {
	x.end(ErrClosed)
	if x.domain != nil {
		x.domain.close()
	}
	err := x.node.Close()
	x.goroutines.wait()
	return err
}

// Stats are the statistics of an exchange.
type Stats struct {
	Nodes    int    `json:"nodes"`    // registered nodes
	Names    int    `json:"names"`    // names of the registered nodes
	Sessions int    `json:"sessions"` // sessions relayed now
	Relayed  uint64 `json:"relayed"`  // total number of relayed sessions
	Refused  uint64 `json:"refused"`  // sessions to absent or forbidden nodes

	// Claimed reports that another exchange has the same id, which was unreachable when this one
	// was made; nil: none is known. It is checked twice a minute.
	Claimed *ClaimedError `json:"claimed,omitempty"`

	// Node are the statistics of the node that accepts connections.
	Node asterisque.NodeStats `json:"node"`
}

// Stats returns the statistics of the exchange.
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

// goroutineGroup tracks the goroutines of an exchange that do not belong to a call or a listener.
type goroutineGroup struct {
	running sync.WaitGroup // incremented with mu held, and never once closed

	mu     sync.Mutex
	closed bool // guarded by mu
}

// begin runs f on a goroutine. After wait it does not, and returns false.
func (c *goroutineGroup) begin(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Go(f) // ends when f does
	}
	return !c.closed
}

// wait rejects further goroutines, and waits for the running ones.
func (c *goroutineGroup) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.running.Wait()
}

// semaphore is a counting semaphore.
type semaphore struct {
	most int64 // fixed
	used atomic.Int64
}

// enter acquires a slot, unless all are taken.
func (r *semaphore) enter() bool {
	if r.used.Add(1) <= r.most {
		return true
	}
	r.used.Add(-1)
	return false
}

func (r *semaphore) leave() { r.used.Add(-1) }

// full returns the error for a missing slot. Nothing has run, so a retry is safe.
func full(format string, args ...any) error {
	a := asterisque.ErrOverloaded.Withf(format, args...)
	a.Ran = codec.Refused
	return a
}
