package asterisqueotel

import (
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/asterisque-go/asterisque"
)

// boundKey is the limit of a session's rate: application, window, room, path, peer.
const boundKey = attribute.Key("asterisque.bound")

// pathInstruments are the instruments of the paths to the peers. It is immutable.
type pathInstruments struct {
	sessions, inFlight metric.Int64ObservableUpDownCounter
	rate, roundTrip    metric.Float64ObservableGauge
}

// instruments creates all instruments.
func (i *pathInstruments) instruments(meter metric.Meter) (all []metric.Observable, err error) {
	errs := make([]error, 4)
	i.sessions, errs[0] = meter.Int64ObservableUpDownCounter("asterisque.path.sessions", metric.WithUnit("{session}"), metric.WithDescription("Sessions by what keeps them from sending more."))
	i.inFlight, errs[1] = meter.Int64ObservableUpDownCounter("asterisque.path.in_flight", metric.WithUnit("By"), metric.WithDescription("Bytes that were sent and are not known to have been read."))
	i.rate, errs[2] = meter.Float64ObservableGauge("asterisque.path.rate", metric.WithUnit("By/s"), metric.WithDescription("What the paths of all sessions deliver, as far as it is known."))
	i.roundTrip, errs[3] = meter.Float64ObservableGauge("asterisque.path.round_trip", metric.WithUnit("s"), metric.WithDescription("Round trips to the peers."))
	return []metric.Observable{i.sessions, i.inFlight, i.rate, i.roundTrip}, errors.Join(errs...)
}

// pathTotals is the sum of the paths of all sessions.
type pathTotals struct {
	bound    [asterisque.BoundByPeer + 1]int64
	inFlight int64
	rate     float64
	trips    []time.Duration // known round trips
}

func (p *pathTotals) add(path asterisque.Path) {
	p.bound[path.Bound]++
	p.inFlight += int64(path.InFlight)
	p.rate += path.Rate
	if path.RoundTrip > 0 {
		p.trips = append(p.trips, path.RoundTrip)
	}
}

// quantile returns the smallest round trip that at least percent of a hundred do not exceed. At
// least one round trip is known.
func (p *pathTotals) quantile(percent int) time.Duration {
	return p.trips[(len(p.trips)*percent+99)/100-1]
}

// observePaths reports the path estimates.
func (o *observer) observePaths(to metric.Observer, p *pathTotals) {
	for bound, n := range p.bound {
		to.ObserveInt64(o.paths.sessions, n, o.with(boundKey.String(asterisque.PathBound(bound).String())))
	}
	to.ObserveInt64(o.paths.inFlight, p.inFlight, o.with())
	to.ObserveFloat64(o.paths.rate, p.rate, o.with())
	if len(p.trips) == 0 {
		return
	}
	slices.Sort(p.trips)
	for name, percent := range map[string]int{"0.5": 50, "0.95": 95, "0.99": 99} {
		to.ObserveFloat64(o.paths.roundTrip, p.quantile(percent).Seconds(), o.with(quantileKey.String(name)))
	}
}
