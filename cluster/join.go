package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/callstore"
	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
	"github.com/asterisque-go/asterisque/cluster/internal/jobqueue"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/internal/presence"
	"github.com/asterisque-go/asterisque/cluster/internal/relay"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// Cluster is the view of one node on a cluster. All methods are safe for concurrent use.
type Cluster struct {
	cfg      Config // fixed, as all up to end
	node     *asterisque.Node
	instance string          // differs for each run
	ctx      context.Context // ends with Close, or when the node is replaced
	end      context.CancelCauseFunc

	nc       *nats.Conn
	buckets  buckets
	again    wait.Notice     // NATS has reconnected
	views    *presence.Views // nil before NATS is connected, as reporter is
	reporter *presence.Reporter
	self     *presence.Announcement // nil: the node has no name
	gateway  *gateway.Gateway       // nil: the node has no name
	claims   *lease.Claims
	resumer  *relay.Relay // nil without Config.ResumeAnywhere
	fence    *lease.Fence
	durable  *callstore.Registry // nil: each node has its own records of durable calls
	queues   *jobqueue.Queues    // nil before NATS is connected
	worker   *jobqueue.Worker    // nil: the node takes no posted calls
	peers    *peerCallers
	hosts    clusterHosts
	refused  atomic.Pointer[context.CancelCauseFunc] // cancels a join that NATS forbids; nil: none

	running sync.WaitGroup // the goroutines; all end with ctx
	once    sync.Once      // Close
}

// Join makes a node with opts, joins it to a cluster, and listens at the addresses of cfg. Then
// other nodes find it by its name, and can reach it. The node stays joined until Close, or
// Shutdown. start bounds the wait for NATS, which is 30 seconds if it has no deadline. It has no
// effect on the returned Cluster.
//
// With resumption ([asterisque.WithResume]) cfg needs a TLS configuration, or opts have to allow
// plain credentials ([asterisque.Access]): other clients of NATS could read the traffic.
//
// Errors are [ErrNameTaken], [ErrNoJetStream], [ErrOtherCluster], a [*BucketError], an error that
// wraps [nats.ErrPermissionViolation] if the NATS server does not allow an operation that a node
// needs, a [*natswire.PayloadError] if its maximum message size is too small, those of listening,
// and those of an invalid cfg.
func Join(start context.Context, cfg Config, opts ...asterisque.Option) (*Cluster, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &Cluster{cfg: cfg, instance: rand.Text(), fence: lease.NewFence(), peers: newPeers()}
	how := asterisque.Resume{}
	if cfg.ResumeAnywhere {
		c.resumer = newRelay(&c.cfg)
		how = c.resumer.Resume()
	}
	if cfg.Durable != nil {
		c.durable = newDurable(&c.cfg, c.instance)
	}
	c.node = asterisque.NewNode(append(cfg.options(opts),
		asterisque.WithInboundInterceptors(inbound(c.fence, c.durable)...), asterisque.WithResume(how))...)
	c.ctx, c.end = context.WithCancelCause(context.Background())
	start, done := c.joining(start)
	defer done()
	if err := c.join(start); err != nil {
		c.Close()
		return nil, refusalOr(start, err)
	}
	return c, nil
}

// inbound returns the interceptors of inbound calls. durable may be nil.
func inbound(fence *lease.Fence, durable *callstore.Registry) []asterisque.Interceptor {
	if durable == nil {
		return []asterisque.Interceptor{fence.Intercept}
	}
	// in this order, so that calls rejected by the fence are not recorded
	return []asterisque.Interceptor{fence.Intercept, durable.Intercept}
}

// newRelay returns the relay that resumes sessions at any node of the name.
func newRelay(c *Config) *relay.Relay {
	return relay.New(relay.Config{
		Name: c.Name, ID: c.ID, TLS: c.TLS, Identity: c.Identity,
		Subject: func(id string) string { return c.meeting(c.Name, id) + ".resume" },
		Life:    lifeTime, RecordLife: recordTime,
	})
}

// connectRelay connects c.resumer, before the node serves its first peer.
func (c *Cluster) connectRelay() error {
	if c.resumer == nil {
		return nil
	}
	return c.resumer.Connect(relay.Links{
		NATS: c.nc, Node: c.node, Alive: c.buckets.alive, Records: c.buckets.sessions, Reconnected: &c.again,
	})
}

// refusalOr returns err, or the permission violation that has ended start: err may only report that
// the context has ended.
func refusalOr(start context.Context, err error) error {
	if why := context.Cause(start); errors.Is(why, nats.ErrPermissionViolation) && !errors.Is(err, why) {
		return fmt.Errorf("cluster: %w", why)
	}
	return err
}

// joinTime is the default time limit for a join: when thousands of nodes join at once, NATS needs
// some time for each answer.
const joinTime = 30 * time.Second

// joining returns the context of a join, which ends with the first permission violation of the NATS
// server: a forbidden request gets no answer.
func (c *Cluster) joining(start context.Context) (context.Context, func()) {
	cancel := context.CancelFunc(func() {})
	if _, ok := start.Deadline(); !ok {
		start, cancel = context.WithTimeout(start, joinTime)
	}
	start, refused := context.WithCancelCause(start)
	c.refused.Store(&refused)
	return start, func() {
		c.refused.Store(nil)
		refused(nil)
		cancel()
	}
}

// options returns the options of the node.
func (c Config) options(theirs []asterisque.Option) []asterisque.Option {
	var opts []asterisque.Option
	if c.Service != nil {
		opts = append(opts, asterisque.WithService(c.Service))
	}
	opts = append(append(opts, theirs...), asterisque.WithID(c.ID))
	if c.TLS != nil {
		opts = append(opts, asterisque.WithTLS(c.TLS))
	}
	return opts
}

func (c *Cluster) join(start context.Context) (err error) {
	if err := c.node.Check(); err != nil {
		return err
	}
	if err := c.connect(start); err != nil {
		return err
	}
	if c.buckets, err = c.awaitBuckets(start); err != nil {
		return err
	}
	c.views, c.reporter = presence.NewViews(c.ctx, c.presence()), presence.NewReporter(c.presence(), c.nobodyAt)
	c.queues = c.newQueues()
	if err := c.beginClaims(); err != nil {
		return err
	}
	if err := c.connectRelay(); err != nil {
		return err
	}
	if err := c.beginDurable(start); err != nil || c.cfg.Name == "" {
		return err
	}
	return c.joinName(start)
}

// joinName makes the node reachable, and then publishes its entry.
func (c *Cluster) joinName(start context.Context) error {
	addresses, err := c.listen(start)
	if err != nil {
		return err
	}
	if err := c.show(start); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := c.beginQueue(start); err != nil {
		return err
	}
	return c.appear(start, addresses)
}

// listen listens at the configured addresses, and through NATS. It returns the addresses for other
// nodes.
func (c *Cluster) listen(start context.Context) (addresses []string, err error) {
	if addresses, err = c.listenDirectly(start); err != nil {
		return nil, err
	}
	if c.cfg.Addresses != nil {
		addresses = c.cfg.Addresses
	}
	for _, a := range addresses {
		if err := reachable(a); err != nil {
			return nil, err
		}
	}
	ln, err := natswire.Listen(start, c.nc, c.cfg.meeting(c.cfg.Name, c.cfg.ID), c.cfg.TLS)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := c.serve(ln); err != nil {
		return nil, err
	}
	if c.resumer != nil {
		err = c.resumer.Serve(start, c.ctx)
	}
	return addresses, err
}

// listenDirectly listens at the configured addresses, and returns the URLs, with their ports.
func (c *Cluster) listenDirectly(start context.Context) (urls []string, err error) {
	for _, url := range c.cfg.Listen {
		ln, err := wire.Listen(start, url, wire.Options{TLS: c.cfg.TLS})
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		if err := c.serve(ln); err != nil {
			return nil, err
		}
		urls = append(urls, ln.URL())
	}
	return urls, nil
}

// meeting returns the subject at which a node listens in NATS. Permissions may reserve it for nodes
// of its name.
func (c *Config) meeting(name, id string) string { return c.Prefix + "." + name + "." + id }

// appear publishes the entry of the node.
func (c *Cluster) appear(start context.Context, addresses []string) error {
	c.self = presence.Announce(c.presence(), c.cfg.member(c.instance, addresses).entry())
	if err := c.self.Join(start); err != nil {
		return err
	}
	c.running.Go(func() { // ends with c.ctx
		if err := c.self.Keep(c.ctx, c.node.Draining()); err != nil {
			c.end(err)
		}
	})
	c.running.Go(func() { presence.NewReaper(c.presence(), c.cfg.ID).Run(c.ctx) }) // likewise
	return nil
}

// presence returns the use of NATS by the entries of nodes.
func (c *Cluster) presence() presence.Env {
	return presence.Env{
		NATS: c.nc, JetStream: c.buckets.js, Nodes: c.buckets.nodes, Alive: c.buckets.alive,
		Life: lifeTime, Beat: beatTime, Reconnected: &c.again, Logger: c.node.Logger(),
		Reopen: func(ctx context.Context) error {
			_, err := openBuckets(ctx, c.nc, &c.cfg, false)
			return err
		},
	}
}

// member returns the node as a Member.
func (c *Config) member(instance string, addresses []string) Member {
	return Member{
		Name: c.Name, ID: c.ID, Instance: instance, State: Present,
		Since: time.Now().UTC().Round(time.Millisecond), Addresses: addresses,
		Identity: c.Identity, Region: c.Region, Version: c.Version, Metadata: c.Metadata,
		Durable: c.Durable != nil,
	}
}

// Node returns the node, for calls without a cluster name, for further listeners, or for its
// sessions. It is closed with the Cluster.
func (c *Cluster) Node() *asterisque.Node { return c.node }

// ID returns the id of the node in the cluster.
func (c *Cluster) ID() string { return c.cfg.ID }

// NATS returns the URL of the connected NATS server, without credentials.
func (c *Cluster) NATS() string { return c.nc.ConnectedUrlRedacted() }

// Done returns a channel that is closed when the node has left the cluster: see Err.
func (c *Cluster) Done() <-chan struct{} { return c.ctx.Done() }

// Err returns nil while the node is in the cluster, and then the reason why it is not: [ErrClosed],
// [ErrReplaced], or the error of a listener. Sessions continue until Close.
func (c *Cluster) Err() error { return context.Cause(c.ctx) }

// Shutdown leaves the cluster gracefully. It announces that the node drains, so that other nodes
// send their calls elsewhere, and running calls complete ([asterisque.Node.Shutdown]). Then
// everything is closed as by Close. If ctx ends first, Shutdown stops waiting and returns its
// error.
func (c *Cluster) Shutdown(ctx context.Context) error {
	var shown sync.WaitGroup
	shown.Go(func() { c.gateway.Close(ctx) }) // ends with ctx
	err := c.node.Shutdown(ctx)
	if c.worker != nil {
		c.worker.Finish(ctx) // writes their outcomes
	}
	shown.Wait()
	c.Close()
	return err
}

// Close leaves the cluster at once, and closes the node with its sessions. The announcement takes a
// second at most. Repeated calls return nil.
func (c *Cluster) Close() error {
	c.once.Do(c.close)
	return nil
}

func (c *Cluster) close() {
	c.end(ErrClosed)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	c.gateway.Close(over)
	c.hosts.close()
	c.node.Close()
	if c.worker != nil {
		c.worker.Close()
	}
	releaseClaims(c.claims, c.node.Logger())
	if c.durable != nil {
		c.durable.Close()
	}
	c.running.Wait()
	if c.worker != nil {
		c.worker.Wait()
	}
	if c.resumer != nil {
		c.resumer.Wait()
	}
	if c.views != nil {
		c.views.Close()
	}
	announceLeave(c.self, c.nc)
	if c.nc != nil {
		c.nc.Close()
	}
}

// announceLeave announces that the node has left. self is nil for a node without a name.
func announceLeave(self *presence.Announcement, nc *nats.Conn) {
	if self == nil || !nc.IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	self.Leave(ctx)
}
