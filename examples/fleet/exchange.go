package main

import (
	"context"
	"crypto/subtle"
	"log/slog"
	"strings"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/wire"
)

// policy defines which nodes may reach which through the exchange, by their proven subjects. Calls
// from the cluster have no proof there, because it has no TLS, and so are matched by "*" alone.
const policy = `
	agents -> orders # they place orders
	*      -> agents # who is in the cluster asks them
`

// runExchange connects agents that can only dial out with the cluster, until ctx ends.
func runExchange(ctx context.Context, o *options, sc *screen, log *slog.Logger) error {
	rules, err := exchange.ReadPolicy(strings.NewReader(policy))
	if err != nil {
		return err
	}
	c, err := cluster.Join(ctx, o.config("", ""), asterisque.WithLogger(log))
	if err != nil {
		return err
	}
	defer c.Close()
	x, err := exchange.New(exchange.Config{
		ID: o.id, Policy: rules, Cluster: c, Logger: log,
		Options: []asterisque.Option{asterisque.WithAccess(provenBy(o.secret)), asterisque.WithLogger(log)},
	})
	if err != nil {
		return err
	}
	defer x.Close()
	ln, err := wire.Listen(ctx, "tcp://"+o.listen, wire.Options{})
	if err != nil {
		return err
	}
	sc.say("the exchange is at %s", ln.URL())
	return x.Serve(ctx, ln)
}

// provenBy admits nodes with a secret to the exchange: they have proved to be agents. In production
// each has a certificate, or its own secret.
func provenBy(secret string) asterisque.Access {
	return asterisque.Access{
		PlainCredentials: true,
		Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			if subtle.ConstantTimeCompare(p.Credential, []byte(secret)) == 0 {
				return nil, asterisque.ErrUnauthorized.Withf("the secret is another one: see -secret")
			}
			return &asterisque.Grant{Subject: agentsName}, nil
		},
	}
}

// proof sends the secret to the exchange.
func proof(secret string) asterisque.Access {
	return asterisque.Access{
		PlainCredentials: true,
		Credential:       func(context.Context, asterisque.Peer) ([]byte, error) { return []byte(secret), nil },
	}
}
