package cluster

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

// look reads the state of the bucket from the leader of the stream, and creates the bucket again if
// it is gone.
func (d *durableRegistry) look(ctx context.Context) (*jetstream.StreamInfo, error) {
	if !d.nc.IsConnected() {
		return nil, nats.ErrConnectionReconnecting
	}
	ctx, cancel := context.WithTimeout(ctx, kv.RequestTimeout)
	defer cancel()
	s, err := d.js.Stream(ctx, d.store.Stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		d.log.Warn("cluster: the bucket of the durable calls is gone, and with it what it remembered", "bucket", d.bucket)
		if _, err = d.open(ctx, false); err == nil {
			s, err = d.js.Stream(ctx, d.store.Stream())
		}
	}
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}
