package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/wire"
)

// serve runs the exchange until ctx ends, and then shuts it down gracefully.
func serve(ctx context.Context, o *options, stdout io.Writer, log *slog.Logger) error {
	rules, err := o.rules()
	if err != nil {
		return err
	}
	secure, err := o.secure()
	if err != nil {
		return err
	}
	cfg := exchange.Config{ID: o.id, Policy: rules, PerNode: o.perNode, Sessions: o.sessions, Logger: log}
	if !o.alone {
		if o.nats == "" {
			b, err := broker.StartLocal()
			if err != nil {
				return err
			}
			defer b.Close()
		}
		c, err := cluster.Join(ctx, cluster.Config{NATS: o.nats, Prefix: o.prefix}, asterisque.WithLogger(log))
		if err != nil {
			return err
		}
		defer c.Close()
		cfg.Cluster = c
		fmt.Fprintf(stdout, "exchange: in the cluster %s of %s\n", o.prefix, c.NATS())
	}
	return serveWith(ctx, o, cfg, secure, stdout)
}

// serveWith is serve with a complete configuration.
func serveWith(ctx context.Context, o *options, cfg exchange.Config, secure *tls.Config, stdout io.Writer) error {
	x, err := exchange.New(cfg)
	if err != nil {
		return err
	}
	defer x.Close()
	ln, err := wire.Listen(ctx, o.listen, wire.Options{TLS: secure})
	if err != nil {
		return err
	}
	tell(stdout, x.ID(), ln.URL(), cfg.Policy)
	if err := x.Serve(ctx, ln); err != nil {
		return err
	}
	fmt.Fprintln(stdout, "exchange: shuts down; interrupt it again to end at once")
	return x.Shutdown(context.WithoutCancel(ctx)) // which takes 30 seconds at most
}

// tell prints the state of the exchange, in particular a missing policy.
func tell(stdout io.Writer, id, url string, rules []exchange.Rule) {
	fmt.Fprintf(stdout, "exchange: %s accepts nodes at %s\n", id, url)
	if len(rules) == 0 {
		fmt.Fprintln(stdout, "exchange: NO NODE may reach another one: there is no policy; see -policy, and -h")
		return
	}
	for _, r := range rules {
		fmt.Fprintf(stdout, "exchange: may reach: %v\n", r)
	}
}
