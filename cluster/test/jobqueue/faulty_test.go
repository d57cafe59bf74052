package jobqueue_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// wrappedOutcomes is JetStream with another bucket of the outcomes.
type wrappedOutcomes struct {
	jetstream.JetStream
	wrap func(jetstream.KeyValue) jetstream.KeyValue
}

// KeyValue implements jetstream.JetStream; the only bucket of the queues is that of the outcomes.
func (js *wrappedOutcomes) KeyValue(ctx context.Context, bucket string) (jetstream.KeyValue, error) {
	kv, err := js.JetStream.KeyValue(ctx, bucket)
	if err != nil {
		return nil, err
	}
	return js.wrap(kv), nil
}

// withOutcomes wraps the bucket of the outcomes of a node.
func withOutcomes(wrap func(jetstream.KeyValue) jetstream.KeyValue) func(*settings) {
	return func(c *settings) {
		c.JetStream = func(js jetstream.JetStream) jetstream.JetStream { return &wrappedOutcomes{js, wrap} }
	}
}

// leaderless is a bucket with a stream that has no leader for one write.
type leaderless struct {
	jetstream.KeyValue
	refused *atomic.Bool
}

func (k *leaderless) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if k.refused.CompareAndSwap(false, true) {
		return 0, jetstream.ErrNoStreamResponse
	}
	return k.KeyValue.Create(ctx, key, value, opts...)
}

// lag makes the reads of a bucket return an old entry for a while.
type lag struct {
	mu    sync.Mutex
	had   jetstream.KeyValueEntry // guarded by mu, as all below
	until time.Time
	times int // number of old answers
}

func (l *lag) begin(had jetstream.KeyValueEntry, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.had, l.until = had, time.Now().Add(d)
}

// answer returns the old entry, or nil.
func (l *lag) answer() jetstream.KeyValueEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.until) {
		return nil
	}
	l.times++
	return l.had
}

func (l *lag) answers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.times
}

// laggingKV is a bucket with a lag.
type laggingKV struct {
	jetstream.KeyValue
	lag *lag
}

func (k *laggingKV) Get(ctx context.Context, key string) (jetstream.KeyValueEntry, error) {
	if had := k.lag.answer(); had != nil {
		return had, nil
	}
	return k.KeyValue.Get(ctx, key)
}

// pausedCreate pauses the second create of a bucket.
type pausedCreate struct {
	creates atomic.Int64
	reached chan struct{} // closed by that create
	free    chan struct{} // ends the pause once it is closed
}

func newPausedCreate() *pausedCreate {
	return &pausedCreate{reached: make(chan struct{}), free: make(chan struct{})}
}

// pausedKV is a bucket with a paused create.
type pausedKV struct {
	jetstream.KeyValue
	pause *pausedCreate
}

func (k *pausedKV) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if k.pause.creates.Add(1) == 2 {
		close(k.pause.reached)
		<-k.pause.free
		ctx = context.WithoutCancel(ctx) // the pause takes no time of the request
	}
	return k.KeyValue.Create(ctx, key, value, opts...)
}

// lostAck is JetStream that loses its first confirmation of a message.
type lostAck struct {
	jetstream.JetStream
	all []*jetstream.PubAck // the confirmations, the lost one too
}

func (js *lostAck) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := js.JetStream.PublishMsg(ctx, m, opts...)
	if err != nil {
		return nil, err
	}
	if js.all = append(js.all, ack); len(js.all) == 1 {
		return nil, nats.ErrTimeout
	}
	return ack, nil
}

// otherQueue is JetStream that reports other limits of the stream of calls.
type otherQueue struct {
	jetstream.JetStream
	change func(*jetstream.StreamConfig)
}

func (js *otherQueue) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	s, err := js.JetStream.Stream(ctx, name)
	if err != nil || name != queueStream {
		return s, err
	}
	info := *s.CachedInfo()
	js.change(&info.Config)
	return &reportedStream{s, &info}, nil
}

// reportedStream is a stream with another description of it.
type reportedStream struct {
	jetstream.Stream
	info *jetstream.StreamInfo
}

func (s *reportedStream) CachedInfo() *jetstream.StreamInfo { return s.info }
