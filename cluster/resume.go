package cluster

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// resumes lets peers go on with their sessions at any node of the name: each session has a record
// in a bucket, and the node to which its peer comes back relays it to the one that the record
// names.
type resumes struct {
	cluster *Cluster // fixed
	records *sessionRecords

	mu     sync.Mutex
	nobody map[string]time.Time // since when nobody is at a node, by its id; guarded by mu
}

func newResumes(c *Cluster) *resumes {
	return &resumes{cluster: c, records: newSessionRecords(c), nobody: make(map[string]time.Time)}
}

// option is for the node. It says nothing of how long sessions wait for their peers.
func (rs *resumes) option() asterisque.Option {
	if !rs.cluster.cfg.ResumeAnywhere {
		return asterisque.WithResume(asterisque.Resume{})
	}
	return asterisque.WithResume(asterisque.Resume{Records: rs.records, Elsewhere: rs.elsewhere})
}

// begin lets other nodes of the name relay peers to this one.
func (rs *resumes) begin(start context.Context) error {
	c := rs.cluster
	if !c.cfg.ResumeAnywhere {
		return nil
	}
	c.running.Go(func() { rs.records.keep(c.ctx) }) // ends with c.ctx
	return rs.listen(start)
}

// meeting is where a node of the name takes what others relay to it.
func (rs *resumes) meeting(id string) string {
	return rs.cluster.meeting(rs.cluster.cfg.Name, id) + ".resume"
}

// elsewhere is for Resume.Elsewhere.
func (rs *resumes) elsewhere(ctx context.Context, r asterisque.SessionRecord, p asterisque.Peer) (wire.Wire, error) {
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

func (rs *resumes) isThere(id string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.nobody, id)
}

// isGone reports whether a node is no more of which NATS knows nothing now: it may be about to
// connect to NATS again, and then its sign of life is still there.
func (rs *resumes) isGone(ctx context.Context, id string) bool {
	rs.mu.Lock()
	now, life := time.Now(), rs.cluster.cfg.times.life
	maps.DeleteFunc(rs.nobody, func(_ string, at time.Time) bool {
		return now.Sub(at) > life // it was back since, or its sign of life is there no more
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
	rs.isThere(id) // or somebody else by that name, later
	return true
}
