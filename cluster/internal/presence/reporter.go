package presence

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// Reporter announces nodes as lost that a peer cannot reach.
type Reporter struct {
	env    Env // fixed, as absent is
	absent func(ctx context.Context, m Member) error

	silent atomic.Bool // no permission to remove lost nodes
}

// NewReporter returns a reporter. absent returns nil if NATS still has no responder for a node: the
// node may have reconnected since the dial, and given its sign of life before the entry was read.
func NewReporter(env Env, absent func(ctx context.Context, m Member) error) *Reporter {
	return &Reporter{env: env, absent: absent}
}

// IsSilent reports whether NATS has denied the permission to report lost nodes.
func (r *Reporter) IsSilent() bool { return r.silent.Load() }

// Report announces that a node is lost, which has no responder in NATS and cannot be reached at its
// addresses. If the node is alive after all, it notices the missing entry at its next sign of life.
// So its entry in Alive is deleted first, regardless of the outcome of the rest.
func (r *Reporter) Report(ctx context.Context, m Member) {
	if m.Revision == 0 || r.silent.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second) // a caller waits for a Wire
	defer cancel()
	if err := r.remove(ctx, m); err != nil { // the node is alive, or the reaper will find it
		for _, bucket := range []jetstream.KeyValue{r.env.Alive, r.env.Nodes} {
			subject := kv.EntrySubject(bucket, m.Key())
			if kv.Denied(r.env.NATS, subject) || kv.Denied(r.env.NATS, "$JS.API.DIRECT.GET.KV_"+bucket.Bucket()+"."+subject) {
				r.silent.Store(true)
			}
		}
		return
	}
	r.env.Logger.Info("cluster: a node is lost", "node", m.Key())
}

// remove deletes the entries of a node, unless it has returned by now.
func (r *Reporter) remove(ctx context.Context, m Member) error {
	last, err := r.env.Alive.Get(ctx, m.Key())
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound): // it has been silent for long
	case err != nil:
		return err
	default:
		if err := r.absent(ctx, m); err != nil {
			return err
		}
		if err := r.env.Alive.Delete(ctx, m.Key(), jetstream.LastRevision(last.Revision())); err != nil {
			return err
		}
	}
	return r.env.Nodes.Delete(ctx, m.Key(), jetstream.LastRevision(m.Revision))
}
