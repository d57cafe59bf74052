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

// Config says how a [Pool] behaves. The zero Config is ready to use.
type Config struct {
	// Connection says how each server is connected to. Its Dial, ServerName and PeerID are not
	// used, as each server has its own [Address], and Persist and Background are as if set: a
	// server that cannot be reached, or that refuses this side, is one of several, and does not end
	// the Pool. OnState is called with the states of all connections. With Background, [New] does
	// not wait for the first set of addresses either.
	Connection asterisque.Reconnection

	// Dial makes the Wire to a server, instead of its URL, which then is no more than a name by
	// which the Pool knows the server. It is called as Dial of [asterisque.Reconnection] is. It may
	// be nil.
	Dial func(ctx context.Context, a Address) (wire.Wire, error)

	// Subset is how many servers this client connects to, unless a call asks for another one: for
	// services with thousands of clients. Which they are follows from the id of its node
	// ([asterisque.WithID]), by rendezvous hashing: each client has its own servers as long as they
	// are there, and all servers have about as many clients. A node without an id gets one by
	// chance. 0 stands for all servers.
	Subset int

	// Budget bounds how many calls that a server has refused are made again on another one; nil
	// stands for NewRetryBudget(0.2, 100): one of five calls, and 100 at once. Calls that failed
	// because their session ended before they were sent, or was shut down, need none: that happens
	// to a call once for each session that ends.
	Budget *asterisque.RetryBudget

	// Health names parts of the servers whose health the Pool heeds: a server that says of one of
	// them that it is not serving gets no calls until it says otherwise, or its session ends. "" is
	// the server as a whole. One that says nothing, or does not offer that
	// ([asterisque.Service.Health]), serves. By default, without names, servers are not asked.
	Health []string
}

// Pool is an [asterisque.Caller] over all servers of a service. Each has one Connection, and each
// call gets one of two servers taken by chance: the one where less is under way, weighted by how
// long its calls have taken of late. Where both are ten times worse than the best server known,
// that one gets the call. A Pool is itself the Caller for calls that any server may serve;
// [Pool.ByKey], [Pool.At], [Pool.Sticky] and [All] are for others.
//
// Calls wait, within their context and their time to live, until a server takes calls, unless
// [asterisque.WithFailFast] says otherwise. One that certainly did not run
// ([asterisque.Repeatable]) because its server refused it with ErrUnavailable or ErrOverloaded, or
// because its session was over, goes to another server at once; one that may have run never does. A
// durable one goes on to the server that it was sent to, which alone remembers the answer, unless
// that shares its answers with others ([Address].Answers).
//
// A server that fails, refuses or does not answer five calls one after the other rests, for about a
// second and longer each time, up to a minute; then it gets one call, and after that its share
// again. While all servers rest, none does. A call counts as not answered if its deadline or time
// to live passes while its server answers no call at all, and another server answers nearly all of
// its own in time. A call that is canceled says nothing of the server, nor does one that carries
// Blocks and ends with its time.
//
// When all servers that calls are spread over refuse them, rest or are away, the Resolver looks for
// others at once, if it is [DNS], or has ended with an error.
//
// The sessions are ordinary ones: servers may call back what the node offers. All methods are safe
// for concurrent use.
type Pool struct {
	node   *asterisque.Node // these are fixed
	how    Config
	client string // by which the subset is chosen
	ctx    context.Context
	end    context.CancelCauseFunc

	shut    atomic.Bool // Shutdown was called
	members members
	running sync.WaitGroup // what ends connections; one is added with the lock of members held

	// the servers that calls are spread over; replaced as a whole
	spread   atomic.Pointer[spread]
	change   wait.Notice               // something may have become usable
	sought   wait.Notice               // all servers refuse: the Resolver is to look for others
	soughtAt atomic.Pointer[time.Time] // of the last notice; nil: there was none
}

// New returns a Pool of the servers that resolve names, and waits for the first set of them: not
// for connections, for which calls wait. life governs the Pool as long as it lives. The error is
// that of the Resolver, or of life. A program that should begin whatever the Resolver says first
// sets Background of Config.Connection.
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
	p.spread.Store(new(spread))
	first := make(chan error, 1)
	go p.follow(resolve, first) // ends with p.ctx, if the Resolver does
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

// over returns why the pool takes no calls any more.
func (p *Pool) over() error {
	return failed(p.Err(), "the pool is closed, or shut down")
}

// Close closes all connections of the Pool at once, and returns when that is done. A Resolver that
// ignores its context may run on.
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

// Shutdown lets no new call begin, shuts all sessions down in good order, as
// [asterisque.Connection.Shutdown] does, and closes the Pool. If ctx ends first, all are closed at
// once, and the error is that of ctx. With the context of a handler of one of these sessions it
// does not wait for that session, and the Pool is closed when that has ended.
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
		default: // ctx is that of a handler
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

// Err returns nil, and when the Pool is closed why.
func (p *Pool) Err() error { return context.Cause(p.ctx) }

// growing returns a wait by chance: about unit the first time, then twice as long each time, at
// most most.
func growing(times int, unit, most time.Duration) time.Duration {
	d := min(unit<<min(times, 20), most)
	return d/2 + jitter(d/2)
}
