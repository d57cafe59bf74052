package main

import (
	"time"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/pool"
)

// config returns how a node of the part joins the cluster.
func (o *options) config(name, id string) cluster.Config {
	return cluster.Config{
		Name: name, ID: id, NATS: o.nats, Replicas: o.servers,
		// by default after 2 s, which is long for a show
		Options: []nats.Option{nats.ReconnectWait(200 * time.Millisecond)},
	}
}

// replicaConfig returns how a replica joins the cluster. What it promises to its callers stands
// here: a durable call runs once, whichever replicas it comes to, and a session goes on over
// whichever replica its peer comes back to.
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
		Share: 1,               // all agents of this machine count as one caller, by their address
	}
	return cfg
}

const (
	// remember is how long durable calls are remembered: longer than anybody repeats them.
	remember       = time.Minute
	mostRemembered = 1 << 18

	// mostAway is how long a session waits for a wire.
	mostAway = 6 * time.Second
)

// answers is the same for what each replica remembers itself.
var answers = asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: remember, Calls: mostRemembered, Share: 1})

// resuming returns opts, and with them what lets the sessions of a node outlive their wires. What
// entitles to that travels as plain text here, as all does: a fleet in earnest has TLS instead.
func resuming(opts ...asterisque.Option) []asterisque.Option {
	return append(opts,
		asterisque.WithResume(asterisque.Resume{For: mostAway}),
		asterisque.WithAccess(asterisque.Access{PlainCredentials: true}))
}

var (
	// soon is when a connection comes back, so that there is something to see in a short time.
	soon = asterisque.Reconnection{First: 100 * time.Millisecond, Most: time.Second}

	// hasty is the same for Pools.
	hasty = pool.Config{Connection: soon}
)
