package asterisqueotel

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

func TestHooks_Sessions(t *testing.T) {
	b := newBackend(t)
	hooks, err := Hooks(b.meters.Meter("test"), attribute.String("node", "one"))
	require.NoError(t, err)
	node, peer := asterisque.NewNode(asterisque.WithHooks(hooks)), asterisque.NewNode()
	for range 3 {
		here, _ := connect(t, node, peer)
		here.Close()
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		m := b.collect(t)
		require.Equal(c, []string{"node=one 3"}, series(m["asterisque.session.begun"]))
		require.Equal(c, []string{"error.type=session closed,node=one 3"}, series(m["asterisque.session.ended"]))
	}, hangs, time.Millisecond)
	require.Empty(t, series(b.collect(t)["asterisque.session.away"]))
}

func TestHooks_OneCountEach(t *testing.T) {
	b := newBackend(t)
	hooks, err := Hooks(b.meters.Meter("test"))
	require.NoError(t, err)
	hooks.SessionBegun(nil)
	hooks.SessionEnded(nil, &asterisque.Abort{Code: 1234})
	hooks.SessionAway(nil, errors.New("lost"))
	hooks.SessionBack(nil)
	for _, state := range []limits.State{limits.Congested, limits.Soft, limits.Ready, limits.Hard} {
		hooks.LimitChanged(nil, asterisque.Outbound, state)
	}
	hooks.Dropped(nil, asterisque.Drop{Reason: asterisque.DropExpired})
	m := b.collect(t)
	for name, want := range map[string][]string{
		"asterisque.session.begun": {" 1"}, "asterisque.session.ended": {"error.type=application 1"}, "asterisque.session.away": {" 1"}, "asterisque.session.back": {" 1"},
		"asterisque.session.limits.reached": {"asterisque.direction=outbound,asterisque.state=hard 1", "asterisque.direction=outbound,asterisque.state=soft 1"},
		"asterisque.dropped":                {"asterisque.reason=expired 1"},
	} {
		require.Equal(t, want, series(m[name]), name)
	}
}

// refusingCounters rejects one instrument.
type refusingCounters struct {
	metric.Meter
	name string
}

func (r refusingCounters) Int64Counter(name string, opts ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name == r.name {
		return nil, errors.New("no " + name)
	}
	return r.Meter.Int64Counter(name, opts...)
}

func TestHooks_RefusedInstrument(t *testing.T) {
	_, err := Hooks(refusingCounters{noop.NewMeterProvider().Meter("test"), "asterisque.dropped"})
	require.EqualError(t, err, "no asterisque.dropped")
}
