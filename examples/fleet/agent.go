package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	exchanged "github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/pool"
)

// agent is a separate node, as if it was a separate program. It has no address: it places orders at
// any replica, and is called by its id.
type agent struct {
	id       string // these are fixed
	way      string // throughExchange, or empty
	ledger   *ledger
	node     member
	orders   asterisque.Caller
	sessions func() int // for placing orders now
	leave    func() error
}

// member is a node in the cluster, or at the exchange.
type member interface {
	Done() <-chan struct{}
	Err() error
	Shutdown(ctx context.Context) error
	Close() error
}

const placeEach = 200 * time.Millisecond

// newAgent makes an agent. The first ones are at the exchange, if there is one, and the next ones
// reach the replicas at one address.
func newAgent(ctx context.Context, o *options, n int, l *ledger, log *slog.Logger) (*agent, error) {
	a := &agent{id: fmt.Sprintf("%s-%03d", o.id, n), ledger: l}
	outside, atDoor := o.ways()
	switch {
	case n < outside:
		return a, a.joinExchange(ctx, o, log)
	case n < outside+atDoor:
		return a, a.goThroughDoor(ctx, o, log)
	}
	return a, a.joinCluster(ctx, o, log)
}

// service has the functions of the agent.
func (a *agent) service() *asterisque.Service {
	svc := asterisque.NewService()
	howFull.Handle(svc, func(ctx context.Context, q question) (van, error) {
		return van{a.id, rand.IntN(101)}, a.ledger.run(ctx, q.Number, a.way, mostAsked)
	})
	return svc
}

// join joins the cluster. The other members reach the agent there through NATS.
func (a *agent) join(ctx context.Context, o *options, log *slog.Logger, opts ...asterisque.Option) (*cluster.Cluster, error) {
	opts = append(opts, asterisque.WithService(a.service()), asterisque.WithLogger(log))
	c, err := cluster.Join(ctx, o.config(agentsName, a.id), opts...)
	if err != nil {
		return nil, err
	}
	a.node, a.leave = c, c.Close
	return c, nil
}

// joinCluster makes the agent find the replicas by their name. Sessions end when their wires are
// cut, and durable calls continue at another replica.
func (a *agent) joinCluster(ctx context.Context, o *options, log *slog.Logger) error {
	c, err := a.join(ctx, o, log)
	if err != nil {
		return err
	}
	p, err := c.Caller(context.WithoutCancel(ctx), ordersName, cluster.WithPool(hasty))
	return a.use(p, err)
}

// use makes the agent place orders at the replicas of a Pool, unless err is set.
func (a *agent) use(p *pool.Pool, err error) error {
	if err != nil {
		return err
	}
	a.orders, a.sessions = p, func() int { return ready(p) }
	a.leave = closing(p, a.node)
	return nil
}

// goThroughDoor makes the agent reach all replicas at one address. A session survives when its wire
// is cut, over any replica that the next wire leads to.
func (a *agent) goThroughDoor(ctx context.Context, o *options, log *slog.Logger) error {
	c, err := a.join(ctx, o, log, resuming()...)
	if err != nil {
		return err
	}
	how := soon
	how.Background, how.RetryFatal = true, true
	at, err := c.Node().Connect(context.WithoutCancel(ctx), o.door, how)
	if err != nil {
		return err
	}
	a.orders, a.leave = at, closing(at, c)
	a.sessions = func() int {
		if at.Ready() {
			return 1
		}
		return 0
	}
	return nil
}

// joinExchange makes the agent only dial out to the exchange, which takes no part in its calls: it
// carries sessions. All go over one wire, which is resumed.
func (a *agent) joinExchange(ctx context.Context, o *options, log *slog.Logger) error {
	a.way = throughExchange
	back := asterisque.WithHooks(asterisque.Hooks{SessionBack: func(*asterisque.Session) { a.ledger.note(number{a.id, 1}, resumedAtExchange) }})
	e, err := exchanged.Join(ctx, exchanged.Config{
		Exchange: []string{o.exchange}, Name: agentsName, ID: a.id, Service: a.service(),
		Options: []asterisque.Option{asterisque.WithAccess(proof(o.secret)), back, asterisque.WithLogger(log)},
	}, resuming(asterisque.WithLogger(log))...)
	if err != nil {
		return err
	}
	a.node, a.leave = e, e.Close
	p, err := e.Caller(context.WithoutCancel(ctx), ordersName, exchanged.WithPool(hasty))
	return a.use(p, err)
}

// closing returns a function that closes calls, the agent's Caller, and then its node.
func closing(calls, node interface{ Close() error }) func() error {
	return func() error { return errors.Join(calls.Close(), node.Close()) }
}

func (a *agent) close() error {
	if a.leave == nil {
		return nil // it has not been created
	}
	return a.leave()
}

// work places orders until ctx ends, and returns after the last answer.
func (a *agent) work(ctx context.Context) error {
	return untilOver(ctx, a.node, func(ctx context.Context) error {
		for rest(ctx, placeEach/2+rand.N(placeEach)) == nil {
			if err := a.ledger.call(ctx, errand{a.id, "replica", a.way, longPatience}, a.place); err != nil {
				return err
			}
		}
		return nil
	})
}

// place places one order.
func (a *agent) place(ctx context.Context, call number) error {
	parcels := 1 + rand.IntN(5)
	return a.ledger.durably(ctx, call, func(ctx context.Context, key asterisque.CallOption) error {
		got, err := placeOrder.Call(ctx, a.orders, order{call, parcels}, key)
		if err == nil && got.Number != call {
			err = errors.New("the receipt is that of another order")
		}
		return err
	})
}
