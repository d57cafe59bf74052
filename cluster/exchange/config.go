package exchange

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
)

// Config says what an [Exchange] does. With the zero Config nobody may reach anybody.
type Config struct {
	// ID is what nodes see of the exchange. It has 1 to 64 letters, digits, '-' and '_'. Empty is a
	// random one.
	ID string

	// Policy says who may reach whom. A node may reach those that one of the rules lets it reach,
	// and no others.
	Policy []Rule

	// Cluster lets the nodes of the exchange and those of a cluster reach each other, and those of
	// other exchanges that have one: every node with a name is a member of it, unless the policy
	// lets nobody there reach it. It stays yours: close the exchange first. Nil is an exchange by
	// itself.
	//
	// A node of the cluster, and so another exchange, has the identity that its certificate proves,
	// if the cluster has TLS, and else none; what it is when it is reached is what it says there.
	// With TLS the exchange speaks for its nodes: its certificate has to prove their identities.
	Cluster *cluster.Cluster

	// Options are for the node that the exchange is to those which connect: [asterisque.WithTLS],
	// [asterisque.WithAccess], [asterisque.WithAdmission] and so on. Its service and its workers
	// are the exchange's own. Sessions are resumed for a minute, which over wires that others could
	// read needs PlainCredentials of Access; [asterisque.WithResume] says otherwise.
	Options []asterisque.Option

	// PerNode is how many relayed sessions each node may have at once, whoever began them. 0 is
	// 1,000; at most 2,500.
	PerNode int

	// Sessions is how many relayed sessions there may be at once. 0 is 100,000.
	Sessions int

	// Answer is how long a node has to answer that it takes a session. 0 is 10 seconds.
	Answer time.Duration

	// Logger is for what goes wrong. Nil is slog.Default().
	Logger *slog.Logger
}

const (
	defaultPerNode  = 1000
	mostPerNode     = 2500
	defaultSessions = 100_000
	defaultAnswer   = 10 * time.Second

	// names is how many names a node may watch at once.
	names = 64

	// resumable is how long an exchange waits for a node that has lost its connection.
	resumable = time.Minute
)

// complete returns c with all that has a default, or what is wrong with it.
func (c Config) complete() (Config, error) {
	c.ID = defaulted(c.ID, strings.ToLower(rand.Text()[:16]))
	c.PerNode = defaulted(c.PerNode, defaultPerNode)
	c.Sessions = defaulted(c.Sessions, defaultSessions)
	c.Answer = defaulted(c.Answer, defaultAnswer)
	c.Logger = defaulted(c.Logger, slog.Default())
	switch {
	case !outer.IsToken(c.ID):
		return c, fmt.Errorf("exchange: Config.ID is %q: it has 1 to 64 letters, digits, '-' and '_'", c.ID)
	case c.PerNode < 1 || c.PerNode > mostPerNode:
		return c, fmt.Errorf("exchange: Config.PerNode is %d: it is 1 to %d", c.PerNode, mostPerNode)
	case c.Sessions < 1:
		return c, fmt.Errorf("exchange: Config.Sessions is %d: it is 1 at least", c.Sessions)
	case c.Answer < 0:
		return c, fmt.Errorf("exchange: Config.Answer is %v: it is more than 0", c.Answer)
	}
	for i, r := range c.Policy {
		if err := r.check(); err != nil {
			return c, fmt.Errorf("exchange: Config.Policy[%d], %v: %w", i, r, err)
		}
	}
	return c, nil
}

// defaulted returns v, or other if that is the zero value.
func defaulted[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// node returns the options of the node.
func (c *Config) node(svc *asterisque.Service) []asterisque.Option {
	opts := []asterisque.Option{asterisque.WithResume(asterisque.Resume{For: resumable})}
	return append(append(opts, c.Options...),
		asterisque.WithID(c.ID), asterisque.WithLogger(c.Logger), asterisque.WithService(svc),
		// each relayed session takes a worker, and so do the registration and each name; the rest
		// is for those that are refused
		asterisque.WithWorkers(asterisque.Workers{Session: c.PerNode + 2*names}))
}
