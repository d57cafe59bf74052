package cluster

import (
	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// maxHints bounds the queue of hints. Further hints are dropped: a renewal detects a takeover as
// well.
const maxHints = 1024

// listen subscribes to hints for this node, and begins to process them.
func (c *claims) listen() error {
	c.hinted = make(chan string, maxHints)
	before := c.nc.LastError()
	sub, err := c.nc.Subscribe(c.hints+"."+c.self.node, func(m *nats.Msg) {
		if len(m.Data) > maxKey {
			return
		}
		select {
		case c.hinted <- string(m.Data):
		default:
		}
	})
	if err == nil {
		err = kv.Subscribed(c.ctx, c.nc, before, sub.Subject)
	}
	if err != nil {
		return err
	}
	c.running.Go(func() { c.heed(sub) }) // ends with c.ctx
	return nil
}

// heed processes hints, one after the other. Any client may send a hint, so it only causes a read
// of the entry of a key that is held here.
func (c *claims) heed(sub *nats.Subscription) {
	defer sub.Unsubscribe()
	for {
		select {
		case <-c.ctx.Done():
			return
		case key := <-c.hinted:
			if claim := c.of(key); claim != nil {
				claim.verify()
			}
		}
	}
}
