package asterisqueotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// Hooks returns hooks for [asterisque.WithHooks] that count session events with meter. The counts
// include sessions that begin and end between two collections. One Hooks value may serve any number
// of nodes. Each measurement has the attributes attrs. An error names the instrument that the meter
// rejected.
//
//	asterisque.session.begun           sessions that have begun
//	asterisque.session.ended           sessions that have ended, by error.type
//	asterisque.session.away            how often sessions have lost their wire and waited for another one
//	asterisque.session.back            how often they have come back
//	asterisque.session.limits.reached  how often by asterisque.direction and asterisque.state: soft, hard
//	asterisque.dropped                 calls and Blocks dropped before they left, by asterisque.reason
func Hooks(meter metric.Meter, attrs ...attribute.KeyValue) (asterisque.Hooks, error) {
	c := counters{attrs: attrs}
	if err := c.instruments(meter); err != nil {
		return asterisque.Hooks{}, err
	}
	return asterisque.Hooks{
		SessionBegun: func(*asterisque.Session) { c.count(c.begun) },
		SessionEnded: func(_ *asterisque.Session, cause error) { c.count(c.ended, errorType(cause)) },
		SessionAway:  func(*asterisque.Session, error) { c.count(c.away) },
		SessionBack:  func(*asterisque.Session) { c.count(c.back) },
		LimitChanged: func(_ *asterisque.Session, d asterisque.Direction, state limits.State) {
			if state >= limits.Soft {
				c.count(c.reached, directionKey.String(d.String()), stateKey.String(state.String()))
			}
		},
		Dropped: func(_ *asterisque.Session, drop asterisque.Drop) {
			c.count(c.dropped, reasonKey.String(drop.Reason.String()))
		},
	}, nil
}

// counters is immutable.
type counters struct {
	attrs                                      []attribute.KeyValue
	begun, ended, away, back, reached, dropped metric.Int64Counter
}

// instruments creates all counters.
func (c *counters) instruments(meter metric.Meter) (err error) {
	for _, i := range []struct {
		to                *metric.Int64Counter
		name, unit, about string
	}{
		{&c.begun, "asterisque.session.begun", "{session}", "Sessions that have begun."},
		{&c.ended, "asterisque.session.ended", "{session}", "Sessions that have ended."},
		{&c.away, "asterisque.session.away", "{loss}", "How often sessions have lost their wire and waited for another one."},
		{&c.back, "asterisque.session.back", "{resume}", "How often sessions have been resumed over another wire."},
		{&c.reached, "asterisque.session.limits.reached", "{time}", "How often sessions have reached a limit."},
		{&c.dropped, "asterisque.dropped", "{message}", "Calls and Blocks that were dropped before they left."},
	} {
		var e error
		*i.to, e = meter.Int64Counter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about))
		err = errors.Join(err, e)
	}
	return err
}

func (c *counters) count(of metric.Int64Counter, attrs ...attribute.KeyValue) {
	of.Add(context.Background(), 1, metric.WithAttributes(c.attrs...), metric.WithAttributes(attrs...))
}

// errorType returns the class of an error, which has few values regardless of the peer.
func errorType(err error) attribute.KeyValue { return semconv.ErrorTypeKey.String(class(err)) }
