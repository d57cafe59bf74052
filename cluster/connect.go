package cluster

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// leastPayload is what the NATS server has to take in one message: an entry, and its subject.
const leastPayload = mostEntry + 4<<10

// connect connects to NATS, and starts a server before if there is to be one here.
func (c *Cluster) connect(start context.Context) error {
	options := append([]nats.Option{
		nats.Name("asterisque " + c.cfg.Name + " " + c.cfg.ID),
		nats.MaxReconnects(-1),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			c.node.Logger().Warn("cluster: NATS", "error", err)
		}),
	}, c.cfg.Options...)
	options = append(options, c.noticeReconnects, nats.Timeout(patience))
	var err error
	if c.cfg.NATS != "" {
		c.nc, err = nats.Connect(c.cfg.NATS, options...)
	} else {
		err = c.connectHere(options)
	}
	if err != nil {
		return fmt.Errorf("cluster: connecting to NATS: %w", err)
	}
	if err := start.Err(); err != nil {
		return context.Cause(start)
	}
	if most := c.nc.MaxPayload(); most < leastPayload {
		return fmt.Errorf("cluster: %w", &natswire.PayloadError{Limit: most, Need: leastPayload})
	}
	return nil
}

// noticeReconnects is a nats.Option beside one that the application may have set.
func (c *Cluster) noticeReconnects(o *nats.Options) error {
	theirs := o.ReconnectedCB
	o.ReconnectedCB = func(nc *nats.Conn) {
		c.again.signal()
		if theirs != nil {
			theirs(nc)
		}
	}
	return nil
}

// connectHere connects to the server of this machine. If there is none, it starts one.
func (c *Cluster) connectHere(options []nats.Option) (err error) {
	if c.nc, err = nats.Connect("nats://"+localServer, options...); err == nil {
		return nil
	}
	if c.own, err = broker.Start(broker.Config{Addr: localServer}); err != nil {
		return err
	}
	c.nc, err = nats.Connect(c.own.URL(), options...)
	return err
}
