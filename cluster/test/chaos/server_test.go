//go:build unix

package chaos

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/asterisque-go/asterisque/cluster/broker"
)

// serverPlan is the plan of a NATS server.
type serverPlan struct {
	Name   string
	Dir    string
	Routes []string // forwarders to all servers, this one included; none: a single one
	Own    string   // of these
}

// serverAddresses is the output of a server once it works.
type serverAddresses struct {
	Clients, Servers string // Servers is empty for a single server
}

// runServer runs a NATS server until ctx ends.
func runServer(ctx context.Context, plan serverPlan, ready func(string)) error {
	cfg := broker.Config{Dir: plan.Dir, Name: plan.Name}
	if len(plan.Routes) > 0 {
		cfg.Routes, cfg.At, cfg.Change = plan.Routes, plan.Own, plan.behindWays
	}
	b, err := broker.Start(cfg)
	if err != nil {
		return err
	}
	defer b.Close()
	said := serverAddresses{Clients: b.Server().Addr().String()}
	if at := b.Server().ClusterAddr(); at != nil {
		said.Servers = at.String()
	}
	text, err := json.Marshal(said)
	if err != nil {
		return err
	}
	ready(string(text))
	<-ctx.Done()
	return b.Close()
}

// behindWays makes the server listen at a free port, to which its forwarder leads.
func (p serverPlan) behindWays(o *server.Options) {
	o.Cluster.Port, o.Cluster.Advertise = server.RANDOM_PORT, p.Own
	o.Cluster.NoAdvertise = true // of its client URLs
}
