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
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/outer"
	"github.com/asterisque-go/asterisque/wire"
)

// Config says how a node takes part in what an exchange joins.
type Config struct {
	// Exchange is where exchanges are that know of each other, or one, as URLs such as
	// "tls://exchange.example.com:5330". The agent connects to one of them, the first that takes
	// it.
	Exchange []string

	// Name is what others call the node by, together with all others of that name: "orders". It has
	// 1 to 64 letters, digits, '-' and '_'. Without a name the node calls others, and is neither
	// listed nor called.
	Name string

	// ID tells the nodes apart, and is what their peers see ([asterisque.WithID]); as Name, of 1 to
	// 64 characters. A node that joins with the name and the id of one that is there takes its
	// place. Empty is a random one.
	ID string

	// Identity is who the node claims to be, which it has to prove to the exchange: by the
	// certificate in TLS, or by the credential that an option of Options shows
	// ([asterisque.Access]). Empty claims nothing: the node has the identity that it proves, or
	// none.
	Identity string

	// TLS is for the connection with the exchange.
	TLS *tls.Config

	// Region is where the node is, such as "eu-west".
	Region string

	// Metadata is what else others may see of the node, in [Member]: 4 KiB with the keys.
	Metadata map[string]string

	// Version is that of the program, for people. It may be empty.
	Version string

	// Service is what the node offers. It may be nil. An option of Join ([asterisque.WithService])
	// takes its place.
	Service *asterisque.Service

	// Options are for the connection with the exchange, and not for the node: [asterisque.Access]
	// with a credential, [asterisque.WithTimeouts] and so on. It is resumed for a minute, which
	// over wires that others could read needs PlainCredentials of Access;
	// [asterisque.WithResume] says otherwise.
	Options []asterisque.Option

	// Sessions is how many sessions with other nodes there may be at once. 0 is 1,000; at most
	// 2,500.
	Sessions int
}

const (
	defaultSessions = 1000
	mostSessions    = 2500

	// resumable is how long the connection with the exchange waits for another Wire.
	resumable = time.Minute

	// joinTime is how long joining may take unless its context says otherwise.
	joinTime = 30 * time.Second
)

// complete returns c with all that has a default, or what is wrong with it.
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

// member returns the node as others are to see it.
func (c Config) member() outer.Member {
	return outer.Member{
		Name: c.Name, ID: c.ID, Instance: rand.Text(), State: outer.Present, Identity: c.Identity,
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

// outer returns the options of the node that has the session with the exchange, which offers svc.
func (c Config) outer(svc *asterisque.Service, node *asterisque.Node) []asterisque.Option {
	opts := []asterisque.Option{
		asterisque.WithResume(asterisque.Resume{For: resumable}), asterisque.WithLogger(node.Logger()),
	}
	if c.TLS != nil {
		opts = append(opts, asterisque.WithTLS(c.TLS))
	}
	return append(append(opts, c.Options...), asterisque.WithID(c.ID), asterisque.WithService(svc),
		// each session takes a worker; the rest is for those that are refused
		asterisque.WithWorkers(asterisque.Workers{Session: c.Sessions + 128}))
}
