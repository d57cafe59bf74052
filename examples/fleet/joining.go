package main

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/pool"
)

// config returns the cluster configuration of a node of the part.
func (o *options) config(name, id string) cluster.Config {
	return cluster.Config{
		Name: name, ID: id, NATS: o.nats, Replicas: o.servers,
		// by default after 2 s, which is long for a show
		Options: []nats.Option{nats.ReconnectWait(200 * time.Millisecond)},
	}
}

// replicaConfig returns the cluster configuration of a replica. It has the guarantees for callers:
// a durable call runs once, even if its attempts reach several replicas, and a session continues
// over any replica to which its peer reconnects.
func (o *options) replicaConfig() cluster.Config {
	cfg := o.config(ordersName, o.id)
	cfg.Listen = []string{"tcp://" + o.listen}
	if o.at != "" {
		cfg.Addresses = []string{"tcp://" + o.at}
	}
	cfg.ResumeAnywhere = true
	cfg.Durable = &cluster.Durable{
		Remember: remember, Calls: mostRemembered,
		Lease: 3 * time.Second, // by default 15 s, which is long for a show
		Share: 1,               // all agents here have one address, so they count as one caller
	}
	return cfg
}

const (
	// remember is how long durable calls are remembered: longer than callers retry them.
	remember       = time.Minute
	mostRemembered = 1 << 18

	// mostAway is how long a session waits for a wire.
	mostAway = 6 * time.Second
)

// answers is the same limit for answers that each replica remembers itself.
var answers = asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: remember, Calls: mostRemembered, Share: 1})

// resuming returns opts, with the options that make the sessions of a node outlive their wires. The
// secret for that is sent as plain text here, like everything else: in production, a fleet has TLS
// instead.
func resuming(opts ...asterisque.Option) []asterisque.Option {
	return append(opts,
		asterisque.WithResume(asterisque.Resume{For: mostAway}),
		asterisque.WithAccess(asterisque.Access{PlainCredentials: true}))
}

var (
	// soon reconnects quickly, to make the effects visible in a short time.
	soon = asterisque.ReconnectConfig{First: 100 * time.Millisecond, Most: time.Second}

	// hasty is the same for Pools.
	hasty = pool.Config{Connection: soon}
)
