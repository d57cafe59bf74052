package agent

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/wire"
)

// Config configures a node that connects to an exchange.
type Config struct {
	// Exchange are the URLs of one exchange, or of several that know each other, such as
	// "tls://exchange.example.com:5330". The agent connects to one of them, the first that accepts
	// it.
	Exchange []string

	// Name is the name under which the node is called, together with all other nodes of that name:
	// "orders". It has 1 to 64 letters, digits, '-' and '_'. A node without a name can call other
	// nodes, and is neither listed nor called.
	Name string

	// ID identifies the node at the exchange and to its peers ([asterisque.WithID]). It has 1 to 64
	// characters, the same as in Name. A node that joins with the name and the id of a present node
	// replaces it. An empty ID is replaced by a random one.
	ID string

	// Identity is the identity that the node claims. It has to prove it to the exchange: by its TLS
	// certificate, or by the credential of an option in Options ([asterisque.Access]). Empty claims
	// nothing: the node has the identity that it proves, or none.
	Identity string

	// TLS is the configuration for the connection with the exchange.
	TLS *tls.Config

	// Region is the region of the node, such as "eu-west".
	Region string

	// Metadata is further public information about the node, shown in [Member]: 4 KiB with the
	// keys.
	Metadata map[string]string

	// Version is the version of the program, for operators. It may be empty.
	Version string

	// Service contains the functions of the node. It may be nil. An option of Join
	// ([asterisque.WithService]) replaces it.
	Service *asterisque.Service

	// Options are options for the connection with the exchange, and not for the node:
	// [asterisque.Access] with a credential, [asterisque.WithTimeouts] and so on. The connection
	// can be resumed for a minute, which needs PlainCredentials of Access over wires without
	// encryption. [asterisque.WithResume] replaces this default.
	Options []asterisque.Option

	// Sessions is the maximum number of concurrent sessions with other nodes. 0 is 1,000; at most
	// 2,500.
	Sessions int
}

const (
	defaultSessions = 1000
	mostSessions    = 2500

	// resumable is how long the connection with the exchange waits for a resume.
	resumable = time.Minute

	// joinTime is the default time limit for a join.
	joinTime = 30 * time.Second
)

// complete returns c with its defaults, or an error if c is invalid.
func (c Config) complete() (Config, error) {
	c.ID = defaulted(c.ID, strings.ToLower(rand.Text()[:16]))
	c.Sessions = defaulted(c.Sessions, defaultSessions)
	c.Exchange, c.Metadata = slices.Clone(c.Exchange), maps.Clone(c.Metadata)
	if err := c.check(); err != nil {
		return c, fmt.Errorf("agent: %w", err)
	}
	return c, nil
}

func (c Config) check() error {
	if len(c.Exchange) == 0 {
		return errors.New("Config.Exchange is empty: it says where the exchange is")
	}
	for _, url := range c.Exchange {
		if err := wire.CheckURL(url); err != nil {
			return err
		}
	}
	if c.Sessions < 1 || c.Sessions > mostSessions {
		return fmt.Errorf("Config.Sessions is %d: it is 1 to %d", c.Sessions, mostSessions)
	}
	m := c.member()
	return m.Check()
}

// member returns the node as a Member.
func (c Config) member() relayproto.Member {
	return relayproto.Member{
		Name: c.Name, ID: c.ID, Instance: rand.Text(), State: relayproto.Present, Identity: c.Identity,
		Region: c.Region, Version: c.Version, Metadata: c.Metadata,
	}
}

// defaulted returns v, or other if that is the zero value.
func defaulted[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

// inner returns the options of the node itself.
func (c Config) inner(theirs []asterisque.Option) []asterisque.Option {
	var opts []asterisque.Option
	if c.Service != nil {
		opts = append(opts, asterisque.WithService(c.Service))
	}
	return append(append(opts, theirs...), asterisque.WithID(c.ID))
}

// outer returns the options of the node that has the session with the exchange, and offers svc.
func (c Config) outer(svc *asterisque.Service, node *asterisque.Node) []asterisque.Option {
	opts := []asterisque.Option{
		asterisque.WithResume(asterisque.Resume{For: resumable}), asterisque.WithLogger(node.Logger()),
	}
	if c.TLS != nil {
		opts = append(opts, asterisque.WithTLS(c.TLS))
	}
	return append(append(opts, c.Options...), asterisque.WithID(c.ID), asterisque.WithService(svc),
		// one worker for each session, and some for rejected ones
		asterisque.WithWorkers(asterisque.Workers{Session: c.Sessions + 128}))
}
