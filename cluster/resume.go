package cluster

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// sessionResumer implements the resume of sessions at any node of the name: each session has a
// record in a bucket, and the node to which its peer reconnects relays it to the node in the
// record.
type sessionResumer struct {
	cluster *Cluster // fixed
	records *sessionRecords

	mu     sync.Mutex
	nobody map[string]time.Time // since when a node has no responder, by its id; guarded by mu
}

func newResumes(c *Cluster) *sessionResumer {
	return &sessionResumer{cluster: c, records: newSessionRecords(c), nobody: make(map[string]time.Time)}
}

// option returns the option of the node. It does not set how long sessions wait for their peers.
func (rs *sessionResumer) option() asterisque.Option {
	if !rs.cluster.cfg.ResumeAnywhere {
		return asterisque.WithResume(asterisque.Resume{})
	}
	return asterisque.WithResume(asterisque.Resume{Records: rs.records, Elsewhere: rs.elsewhere})
}

// connect opens the records, before the node serves its first peer.
func (rs *sessionResumer) connect() (err error) {
	if c := rs.cluster; c.cfg.ResumeAnywhere {
		rs.records.store, err = kv.NewStore(c.nc, c.buckets.sessions)
	}
	return err
}

// begin starts to accept peers that other nodes of the name relay to this one.
func (rs *sessionResumer) begin(start context.Context) error {
	c := rs.cluster
	if !c.cfg.ResumeAnywhere {
		return nil
	}
	c.running.Go(func() { rs.records.keep(c.ctx) }) // ends with c.ctx
	return rs.listen(start)
}

// meeting returns the subject at which a node of the name accepts relayed peers.
func (rs *sessionResumer) meeting(id string) string {
	return rs.cluster.meeting(rs.cluster.cfg.Name, id) + ".resume"
}

// elsewhere implements Resume.Elsewhere.
func (rs *sessionResumer) elsewhere(ctx context.Context, r asterisque.SessionRecord, p asterisque.Peer) (wire.Wire, error) {
	w, err := natswire.Dial(ctx, rs.cluster.nc, rs.meeting(r.Node), rs.dialTLS())
	switch {
	case err == nil:
		rs.isThere(r.Node)
		return rs.ask(ctx, w, r, p)
	case errors.Is(err, natswire.ErrNobody) && rs.isGone(ctx, r.Node):
		return nil, nil
	}
	return nil, err
}

func (rs *sessionResumer) isThere(id string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.nobody, id)
}

// isGone reports whether a node without a responder in NATS is gone: it may be about to reconnect
// to NATS, and then its sign of life still exists.
func (rs *sessionResumer) isGone(ctx context.Context, id string) bool {
	rs.mu.Lock()
	now, life := time.Now(), rs.cluster.periods().life
	maps.DeleteFunc(rs.nobody, func(_ string, at time.Time) bool {
		return now.Sub(at) > life // it has returned since, or its sign of life has expired
	})
	since, known := rs.nobody[id]
	if !known {
		since = now
		rs.nobody[id] = since
	}
	rs.mu.Unlock()
	if time.Since(since) < doubt {
		_, err := rs.cluster.buckets.alive.Get(ctx, rs.cluster.cfg.Name+"."+id)
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return false
		}
	}
	rs.isThere(id) // or a later node with that id
	return true
}
