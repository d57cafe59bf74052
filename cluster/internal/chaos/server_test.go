//go:build unix

package chaos

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/asterisque-go/asterisque/cluster/broker"
)

// serverPlan is the plan of a server of NATS.
type serverPlan struct {
	Name   string
	Dir    string
	Routes []string // the ways to the servers of the cluster, this one included; none: it is alone
	Own    string   // of these
}

// serverAddresses is what a server says once it works.
type serverAddresses struct {
	Clients, Servers string // the latter is empty if it is alone
}

// runServer is a server of NATS until ctx ends.
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

// behindWays lets the server listen at a free port, to which its way leads.
func (p serverPlan) behindWays(o *server.Options) {
	o.Cluster.Port, o.Cluster.Advertise = server.RANDOM_PORT, p.Own
	o.Cluster.NoAdvertise = true // of its own clients
}
