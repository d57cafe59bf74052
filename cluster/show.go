package cluster

import (
	"context"
	"maps"
)

// show exposes the node to plain NATS clients.
func (c *Cluster) show(start context.Context) (err error) {
	c.offered, err = newEndpoints(start, c.nc, c.cfg.Name, c.cfg.Endpoints, c.cfg.Service, c.node)
	if err != nil || c.cfg.Hidden {
		return err
	}
	metadata := maps.Clone(c.cfg.Metadata)
	if c.cfg.Region != "" {
		if metadata == nil {
			metadata = make(map[string]string)
		}
		metadata["asterisque.region"] = c.cfg.Region
	}
	c.micro, err = newTools(start, c.nc, toolsInfo{
		name: c.cfg.Name, id: c.cfg.ID, version: c.cfg.Version, description: "a node of the cluster " + c.cfg.Cluster,
		metadata: metadata, subject: "asterisque.wire." + c.meeting(c.cfg.Name, c.cfg.ID), offered: c.offered,
	}, c.cfg.Service)
	return err
}

// hide ends the effects of show: no more requests are received, and running ones may complete until
// ctx ends.
func (c *Cluster) hide(ctx context.Context) {
	if c.micro != nil {
		c.micro.close()
	}
	c.offered.close(ctx)
}
