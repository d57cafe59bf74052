package exchange

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
)

// Config configures an [Exchange]. The zero Config allows no node to reach another one.
type Config struct {
	// ID is the id of the exchange, as seen by nodes. It has 1 to 64 letters, digits, '-' and '_'.
	// Empty is a random one.
	ID string

	// Policy decides which nodes may reach which. A node may reach exactly the nodes that one of
	// the rules allows.
	Policy []Rule

	// Cluster connects the exchange to a cluster. The nodes of the exchange, those of the cluster,
	// and those of other exchanges of the cluster can then reach each other. Every node with a name
	// is a member of the cluster, unless the policy allows no node there to reach it. The caller
	// keeps ownership of the Cluster, and has to close the exchange first. Nil is a standalone
	// exchange.
	//
	// A node of the cluster, and so another exchange, has the identity that its certificate proves,
	// if the cluster has TLS, and otherwise none. When it is reached, its identity is the one that
	// it announces there. With TLS the exchange does TLS for its nodes: its certificate has to
	// prove their identities.
	Cluster *cluster.Cluster

	// Options are options of the node that accepts connections: [asterisque.WithTLS],
	// [asterisque.WithAccess], [asterisque.WithAdmission] and so on. The exchange sets its service
	// and its workers. Sessions can be resumed for a minute, which needs PlainCredentials of Access
	// over wires without encryption. [asterisque.WithResume] replaces this default.
	Options []asterisque.Option

	// PerNode is the maximum number of concurrent relayed sessions of each node, in both
	// directions. 0 is 1,000; at most 2,500.
	PerNode int

	// Sessions is the maximum number of concurrent relayed sessions. 0 is 100,000.
	Sessions int

	// Answer is the time limit for a node to accept a session. 0 is 10 seconds.
	Answer time.Duration

	// Logger receives warnings and errors. Nil is slog.Default().
	Logger *slog.Logger
}

const (
	defaultPerNode  = 1000
	mostPerNode     = 2500
	defaultSessions = 100_000
	defaultAnswer   = 10 * time.Second

	// names is the maximum number of names that a node may watch at once.
	names = 64

	// resumable is how long an exchange waits for a resume by a node that has lost its connection.
	resumable = time.Minute
)

// complete returns c with its defaults, or an error if c is invalid.
func (c Config) complete() (Config, error) {
	c.ID = defaulted(c.ID, strings.ToLower(rand.Text()[:16]))
	c.PerNode = defaulted(c.PerNode, defaultPerNode)
	c.Sessions = defaulted(c.Sessions, defaultSessions)
	c.Answer = defaulted(c.Answer, defaultAnswer)
	c.Logger = defaulted(c.Logger, slog.Default())
	switch {
	case !relayproto.IsToken(c.ID):
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
		// one worker for each relayed session, for the registration and for each name, and some for
		// rejected calls
		asterisque.WithWorkers(asterisque.Workers{Session: c.PerNode + 2*names}))
}
