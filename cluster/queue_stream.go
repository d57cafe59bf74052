package cluster

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// openQueue gets the streams of a queue from open. A node that takes its calls checks the limits. A
// poster accepts them as they are.
func (c *Cluster) openQueue(ctx context.Context, name string, open streamOpener, check bool) (*nameQueue, error) {
	plan := *c.cfg.Queue
	want := c.queueStream(name, plan)
	s, err := open(ctx, c.buckets.js, want)
	if err != nil {
		return nil, err
	}
	have := s.CachedInfo().Config
	if err := c.checkQueue(have, want, check); err != nil {
		return nil, err
	}
	plan.Longest, plan.Bytes = have.MaxAge, have.MaxBytes
	q := &nameQueue{name: name, subject: c.queueSubject(name), longest: plan.Longest, stream: s, js: c.buckets.js}
	return q, c.openOutcomes(ctx, q, plan, open, check)
}

// openOutcomes is openQueue for the bucket of the outcomes.
func (c *Cluster) openOutcomes(ctx context.Context, q *nameQueue, plan Queue, open streamOpener, check bool) (err error) {
	bucket := bucketName(c.cfg.Prefix, "results_"+q.name)
	want := c.outcomesStream(bucket, plan)
	s, err := open(ctx, q.js, want)
	if err != nil {
		return err
	}
	if err := c.checkOutcomes(bucket, s.CachedInfo().Config, want, check); err != nil {
		return err
	}
	q.outcomes, err = q.js.KeyValue(ctx, bucket)
	return err
}

// queueSubject returns the subject for calls to a name, without the class.
func (c *Cluster) queueSubject(name string) string {
	return "asterisque.queue." + c.cfg.Prefix + "." + name
}

// classSubjects returns the subjects for calls of each class. The queue accepts no other subjects,
// since no node would take their messages.
func (c *Cluster) classSubjects(name string) (subjects []string) {
	for class := range queueClasses {
		subjects = append(subjects, c.queueSubject(name)+"."+strconv.Itoa(class))
	}
	return subjects
}

func (c *Cluster) queueStream(name string, plan Queue) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        bucketName(c.cfg.Prefix, "queue_"+name),
		Description: "calls that wait for asterisque nodes",
		Subjects:    c.classSubjects(name),
		Retention:   jetstream.WorkQueuePolicy,
		Discard:     jetstream.DiscardNew,
		MaxMsgs:     plan.Calls,
		MaxBytes:    plan.Bytes,
		MaxAge:      plan.Longest,
		Duplicates:  min(plan.Longest, 10*time.Minute),
		AllowMsgTTL: true,
		Storage:     c.cfg.times.storage(),
		Replicas:    c.cfg.Replicas,
		Metadata:    map[string]string{clusterKey: c.cfg.Cluster},
	}
}

// outcomesStream returns the stream configuration of the bucket of the outcomes, as package
// jetstream makes one for a bucket; creating a bucket would need one more permission. The keys are
// hashes of a key that cannot be guessed. The bucket has room for the outcomes of all calls that
// have begun while there was room.
func (c *Cluster) outcomesStream(bucket string, plan Queue) jetstream.StreamConfig {
	s := bucketStream(bucket, "outcomes of calls that waited for asterisque nodes", plan.kept(), withReserve(plan.Bytes))
	s.Storage, s.Replicas = c.cfg.times.storage(), c.cfg.Replicas
	s.Metadata = map[string]string{clusterKey: c.cfg.Cluster}
	return s
}

// streamOpener is openStream, or findStream.
type streamOpener func(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error)

// findStream opens a stream. The error is jetstream.ErrStreamNotFound if it does not exist.
func findStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	return js.Stream(ctx, want.Name)
}

// openStream opens a stream, and creates it if it does not exist.
func openStream(ctx context.Context, js jetstream.JetStream, want jetstream.StreamConfig) (jetstream.Stream, error) {
	s, err := js.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		s, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another node has created it
			s, err = js.Stream(ctx, want.Name)
		}
	}
	return s, err
}

// checkQueue returns an error if the stream of a queue differs from want. It checks the limits only
// if limits is true.
func (c *Cluster) checkQueue(have, want jetstream.StreamConfig, limits bool) error {
	if other := have.Metadata[clusterKey]; other != c.cfg.Cluster {
		return otherCluster(want.Name, other, c.cfg.Cluster)
	}
	list := []checkedLimit{
		{"retention", want.Retention.String(), have.Retention.String()},
		{"policy of discarding", want.Discard.String(), have.Discard.String()},
		{"time to live of each message allowed", strconv.FormatBool(true), strconv.FormatBool(have.AllowMsgTTL)},
	}
	if have.MaxAge < time.Second {
		list = append(list, checkedLimit{"time to live", want.MaxAge.String(), have.MaxAge.String()})
	}
	if limits {
		list = append(list, checkedLimit{"number of calls", number(want.MaxMsgs), number(have.MaxMsgs)})
		list = append(list, limitsOf(want, have)...)
	}
	return differing(want.Name, list...)
}

// checkOutcomes returns an error if the bucket of the outcomes differs from want; it looks at the
// limits as checkQueue does.
func (c *Cluster) checkOutcomes(bucket string, have, want jetstream.StreamConfig, limits bool) error {
	if other := have.Metadata[clusterKey]; other != c.cfg.Cluster {
		return otherCluster(bucket, other, c.cfg.Cluster)
	}
	list := []checkedLimit{{"history", number(want.MaxMsgsPerSubject), number(have.MaxMsgsPerSubject)}}
	if limits {
		list = append(list, limitsOf(want, have)...)
	}
	return differing(bucket, list...)
}
