package cluster

import (
	"github.com/nats-io/nats.go"
)

// maxHints bounds how many hints wait. Others are dropped: a renewal finds out what they say.
const maxHints = 1024

// listen lets hints to this node arrive, and begins to look at them.
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
		err = subscribed(c.ctx, c.nc, before, sub.Subject)
	}
	if err != nil {
		return err
	}
	c.running.Go(func() { c.heed(sub) }) // ends with c.ctx
	return nil
}

// heed looks at hints, one after the other. A hint is worth no more than a look at the entry of a
// key that is held here: anybody may send it.
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
