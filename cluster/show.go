package cluster

import (
	"context"
	"maps"

	"github.com/asterisque-go/asterisque/cluster/internal/gateway"
)

// show exposes the node to plain NATS clients.
func (c *Cluster) show(start context.Context) (err error) {
	endpoints := make([]gateway.Endpoint, len(c.cfg.Endpoints))
	for i, e := range c.cfg.Endpoints {
		endpoints[i] = gateway.Endpoint(e)
	}
	metadata := maps.Clone(c.cfg.Metadata)
	if c.cfg.Region != "" {
		if metadata == nil {
			metadata = make(map[string]string)
		}
		metadata["asterisque.region"] = c.cfg.Region
	}
	c.gateway, err = gateway.Open(start, gateway.Config{
		NATS: c.nc, Node: c.node, Name: c.cfg.Name, ID: c.cfg.ID, Version: c.cfg.Version,
		Description: "a node of the cluster " + c.cfg.Cluster, Metadata: metadata,
		Subject: "asterisque.wire." + c.meeting(c.cfg.Name, c.cfg.ID),
		Service: c.cfg.Service, Endpoints: endpoints, Hidden: c.cfg.Hidden,
	})
	return err
}
