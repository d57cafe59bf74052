package jobqueue

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// openQueue gets the streams of a queue from open. A node that takes its calls checks the limits. A
// poster accepts them as they are.
func (qs *Queues) openQueue(ctx context.Context, name string, open kv.Opener, check bool) (*queue, error) {
	plan := qs.cfg.Plan
	want := qs.queueStream(name, plan)
	s, err := open(ctx, qs.links.JetStream, want)
	if err != nil {
		return nil, err
	}
	have := s.CachedInfo().Config
	if err := qs.checkQueue(have, want, check); err != nil {
		return nil, err
	}
	plan.Longest, plan.Bytes = have.MaxAge, have.MaxBytes
	q := &queue{name: name, subject: qs.queueSubject(name), longest: plan.Longest, stream: s, js: qs.links.JetStream}
	return q, qs.openOutcomes(ctx, q, plan, open, check)
}

// openOutcomes is openQueue for the bucket of the outcomes.
func (qs *Queues) openOutcomes(ctx context.Context, q *queue, plan Plan, open kv.Opener, check bool) (err error) {
	bucket := kv.BucketName(qs.cfg.Prefix, "results_"+q.name)
	want := qs.outcomesStream(bucket, plan)
	s, err := open(ctx, q.js, want)
	if err != nil {
		return err
	}
	if err := qs.checkOutcomes(bucket, s.CachedInfo().Config, want, check); err != nil {
		return err
	}
	q.outcomes, err = q.js.KeyValue(ctx, bucket)
	return err
}

// queueSubject returns the subject for calls to a name, without the class.
func (qs *Queues) queueSubject(name string) string {
	return "asterisque.queue." + qs.cfg.Prefix + "." + name
}

// classSubjects returns the subjects for calls of each class. The queue accepts no other subjects,
// since no node would take their messages.
func (qs *Queues) classSubjects(name string) (subjects []string) {
	for class := range classes {
		subjects = append(subjects, qs.queueSubject(name)+"."+strconv.Itoa(class))
	}
	return subjects
}

func (qs *Queues) queueStream(name string, plan Plan) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        kv.BucketName(qs.cfg.Prefix, "queue_"+name),
		Description: "calls that wait for asterisque nodes",
		Subjects:    qs.classSubjects(name),
		Retention:   jetstream.WorkQueuePolicy,
		Discard:     jetstream.DiscardNew,
		MaxMsgs:     plan.Calls,
		MaxBytes:    plan.Bytes,
		MaxAge:      plan.Longest,
		Duplicates:  min(plan.Longest, 10*time.Minute),
		AllowMsgTTL: true,
		Storage:     qs.cfg.Storage,
		Replicas:    qs.cfg.Replicas,
		Metadata:    map[string]string{kv.ClusterKey: qs.cfg.Cluster},
	}
}

// outcomesStream returns the stream configuration of the bucket of the outcomes, as package
// jetstream makes one for a bucket; creating a bucket would need one more permission. The keys are
// hashes of a key that cannot be guessed. The bucket has room for the outcomes of all calls that
// have begun while there was room.
func (qs *Queues) outcomesStream(bucket string, plan Plan) jetstream.StreamConfig {
	s := kv.BucketStream(bucket, "outcomes of calls that waited for asterisque nodes", plan.kept(), kv.WithReserve(plan.Bytes))
	s.Storage, s.Replicas = qs.cfg.Storage, qs.cfg.Replicas
	s.Metadata = map[string]string{kv.ClusterKey: qs.cfg.Cluster}
	return s
}

// checkQueue returns an error if the stream of a queue differs from want. It checks the limits only
// if limits is true.
func (qs *Queues) checkQueue(have, want jetstream.StreamConfig, limits bool) error {
	if other := have.Metadata[kv.ClusterKey]; other != qs.cfg.Cluster {
		return kv.OtherCluster(want.Name, other, qs.cfg.Cluster)
	}
	list := []kv.Limit{
		kv.NewLimit("retention", want.Retention, have.Retention),
		kv.NewLimit("policy of discarding", want.Discard, have.Discard),
		kv.NewLimit("time to live of each message allowed", true, have.AllowMsgTTL),
	}
	if have.MaxAge < time.Second {
		list = append(list, kv.NewLimit("time to live", want.MaxAge, have.MaxAge))
	}
	if limits {
		list = append(list, kv.NewLimit("number of calls", want.MaxMsgs, have.MaxMsgs))
		list = append(list, kv.StreamLimits(want, have)...)
	}
	return kv.Differing(want.Name, list...)
}

// checkOutcomes returns an error if the bucket of the outcomes differs from want; it looks at the
// limits as checkQueue does.
func (qs *Queues) checkOutcomes(bucket string, have, want jetstream.StreamConfig, limits bool) error {
	if other := have.Metadata[kv.ClusterKey]; other != qs.cfg.Cluster {
		return kv.OtherCluster(bucket, other, qs.cfg.Cluster)
	}
	list := []kv.Limit{kv.NewLimit("history", want.MaxMsgsPerSubject, have.MaxMsgsPerSubject)}
	if limits {
		list = append(list, kv.StreamLimits(want, have)...)
	}
	return kv.Differing(bucket, list...)
}
