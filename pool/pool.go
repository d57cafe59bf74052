package pool

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
)

// Config configures a [Pool]. The zero Config is ready to use.
type Config struct {
	// Connection configures the connection to each server. Its Dial, ServerName and PeerID are not
	// used, as each server has its own [Address]. RetryFatal and Background are always set: a
	// server that is unreachable or rejects this side is one of several, and does not end the Pool.
	// OnState is called with the states of all connections. With Background, [New] does not wait
	// for the first set of addresses either.
	Connection asterisque.ReconnectConfig

	// Dial makes the Wire to a server in place of its URL, which then only names the server within
	// the Pool. It is called in the same way as Dial of [asterisque.ReconnectConfig]. It may be
	// nil.
	Dial func(ctx context.Context, a Address) (wire.Wire, error)

	// Subset is the number of servers this client connects to, unless a call selects another one:
	// for services with thousands of clients. The selection follows from the id of the node
	// ([asterisque.WithID]) by rendezvous hashing. Each client keeps its servers as long as they
	// are in the set, and all servers have about the same number of clients. A node without an id
	// gets a random one. 0 stands for all servers.
	Subset int

	// Budget bounds the retries on another server of calls that a server has rejected. nil stands
	// for NewRetryBudget(0.2, 100): one of five calls, and 100 at once. Calls that failed because
	// their session ended or shut down before they were sent need no budget: this happens to a call
	// at most once for each session that ends.
	Budget *asterisque.RetryBudget

	// Health names the parts of the servers for which the Pool watches the health. A server that
	// reports one of them as not serving gets no calls until it reports otherwise, or its session
	// ends. "" is the server as a whole. A server without a report, or without a health service
	// ([asterisque.Service.Health]), counts as serving. By default, without names, the Pool does
	// not watch the health.
	Health []string
}

// Pool is an [asterisque.Caller] over all servers of a service. It keeps one Connection to each
// server. Each call picks two random servers and uses the one with the lower load: its running
// calls, weighted by the recent latency of its calls. If both loads are ten times that of the best
// server known, the call uses that server. The latency of a server that gets no calls halves each
// second, more slowly if the server stays slow, and is forgotten when its session is replaced. A
// Pool is itself the Caller for calls that any server may serve. [Pool.ByKey], [Pool.At],
// [Pool.Sticky] and [All] select servers in other ways.
//
// Calls block, within their context and their time to live, until a server takes calls, unless they
// have [asterisque.WithFailFast]. A call that certainly did not run ([asterisque.Repeatable]),
// because its server rejected it with ErrUnavailable or ErrOverloaded or because its session was
// over, is retried on another server at once. A call that may have run is never retried. A durable
// call resumes on the server that it was sent to, which alone stores the answer, unless that server
// shares its answers with other servers ([Address].Answers).
//
// A server that fails, rejects or does not answer five calls in a row rests: it gets no calls for
// about a second, and longer each time, up to a minute. Then it gets one call as a trial, and after
// a success its share again. While all servers rest, the rests are ignored. A call counts as not
// answered if its deadline or time to live passes while its server answers no call at all, and
// another server answers nearly all of its own calls in time. Canceled calls do not count, nor do
// calls that carry Blocks and expire.
//
// When all servers that calls are balanced over reject calls, rest or are unreachable, the Pool
// makes its Resolver look for other servers at once, if that is [DNS] or has ended with an error.
//
// The sessions are ordinary ones: servers may call back the functions of the node. All methods are
// safe for concurrent use.
type Pool struct {
	node   *asterisque.Node // fixed, as all up to end
	how    Config
	client string // the key by which the subset is chosen
	ctx    context.Context
	end    context.CancelCauseFunc

	shut    atomic.Bool // Shutdown was called
	members members
	running sync.WaitGroup // ends connections; incremented with members.mu held

	// the servers that calls are balanced over; replaced as a whole
	spread   atomic.Pointer[serverSpread]
	change   wait.Notice               // a server may have become usable
	sought   wait.Notice               // all servers reject calls, so look up others
	soughtAt atomic.Pointer[time.Time] // of the last notice; nil: none yet
}

// New returns a Pool of the servers that resolve yields. It waits for the first set of addresses,
// not for connections: calls wait for those. life bounds the lifetime of the Pool. The error is
// that of the Resolver, or of life. Set Background of Config.Connection to start regardless of the
// Resolver's first result.
func New(life context.Context, node *asterisque.Node, resolve Resolver, how Config) (*Pool, error) {
	if node == nil || resolve == nil {
		return nil, asterisque.ErrUnavailable.Withf("a pool needs a node and a Resolver: New was given nil; use Fixed for a list of URLs")
	}
	how.Health = slices.Clone(how.Health)
	if how.Budget == nil {
		how.Budget = asterisque.NewRetryBudget(0.2, 100)
	}
	p := &Pool{node: node, how: how, client: node.ID()}
	if p.client == "" {
		p.client = randomID()
	}
	p.ctx, p.end = context.WithCancelCause(life)
	p.members.init()
	p.spread.Store(new(serverSpread))
	first := make(chan error, 1)
	go p.follow(resolve, first) // ends with p.ctx, if the Resolver returns
	if how.Connection.Background {
		return p, nil
	}
	select {
	case err := <-first:
		if err != nil {
			p.Close()
			return nil, err
		}
	case <-p.ctx.Done():
		err := p.over()
		p.Close()
		return nil, err
	}
	return p, nil
}

func randomID() string {
	var id [16]byte
	rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
}

// over returns the error of a pool that takes no more calls.
func (p *Pool) over() error {
	return failed(p.Err(), "the pool is closed, or shut down")
}

// Close closes all connections of the Pool at once, and returns when they have ended. A Resolver
// that ignores its context may keep running.
func (p *Pool) Close() error {
	p.shut.Store(true)
	p.end(asterisque.ErrSessionClosed.Withf("the pool was closed by this side"))
	var all errgroup.Group
	for _, s := range p.members.close() {
		all.Go(s.conn.Close)
	}
	err := all.Wait()
	p.running.Wait()
	return err
}

// Shutdown rejects new calls, shuts all sessions down gracefully as
// [asterisque.Connection.Shutdown] does, and closes the Pool. If ctx ends first, it closes all
// sessions at once and returns the error of ctx. With the context of a handler of one of these
// sessions it does not wait for that session, and the Pool is closed when that session has ended.
func (p *Pool) Shutdown(ctx context.Context) error {
	p.shut.Store(true)
	p.change.Signal()
	var all errgroup.Group
	left := p.members.close()
	for _, s := range left {
		all.Go(func() error { return s.conn.Shutdown(ctx) })
	}
	err := all.Wait()
	for _, s := range left {
		select {
		case <-s.conn.Done():
		default: // ctx belongs to a handler
			go p.closeAfter(left) // ends with the handler
			return err
		}
	}
	p.Close()
	return err
}

// closeAfter closes the pool when all connections have ended.
func (p *Pool) closeAfter(left []*server) {
	for _, s := range left {
		<-s.conn.Done()
	}
	p.Close()
}

// Err returns nil, or the cause once the Pool is closed.
func (p *Pool) Err() error { return context.Cause(p.ctx) }

// growing returns a random delay: about unit the first time, then twice as long each time, at most
// most.
func growing(times int, unit, most time.Duration) time.Duration {
	d := min(unit<<min(times, 20), most)
	return d/2 + jitter(d/2)
}
