package asterisqueotel

import (
	"context"
	"errors"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// Attributes of a node's metrics, each with few values.
const (
	directionKey = attribute.Key("asterisque.direction") // inbound, outbound
	// of limits: ready, congested, soft, hard; of workers: busy, idle
	stateKey    = attribute.Key("asterisque.state")
	quantileKey = attribute.Key("asterisque.quantile") // 0.5, 0.95, 0.99
	// of the room: opens, nested, blocks, large; of held bytes: running as well
	shareKey = attribute.Key("asterisque.share")
	// of a wait: window, opens, outbound; large for current waits, reader for past ones; of a drop:
	// its cause
	reasonKey = attribute.Key("asterisque.reason")
)

// Observe registers the metrics of node with meter, until the caller calls unregister. The end of
// the node does not unregister them. Each collection inspects every session. Each measurement has
// the attributes attrs. They keep several nodes of a program apart, which otherwise overwrite each
// other. An error names the instrument that the meter rejected, and then no metric is registered.
//
//	asterisque.sessions           sessions that are up
//	asterisque.session.limits     sessions by asterisque.direction and asterisque.state of their limits
//	asterisque.pipes              running calls of both sides
//	asterisque.calls.waiting      calls of peers that wait for a worker
//	asterisque.calls.running      calls of peers with a running handler
//	asterisque.held.messages      queued messages, by asterisque.direction
//	asterisque.held.bytes         the same, in bytes
//	asterisque.room.size          bytes that sessions have for messages of peers, by asterisque.share; see [asterisque.Stats]
//	asterisque.room.promised      of these, the bytes promised to peers, by the same
//	asterisque.room.held          of these, the bytes held, by the same; also those held by running calls
//	asterisque.answers.parked     answers of handlers that wait to be sent
//	asterisque.waiting            current waits for room, by asterisque.reason
//	asterisque.waits              number of waits so far, and of stops of the reader, by the same
//	asterisque.waited             total time of the waits, in seconds, by the same
//	asterisque.workers            goroutines for handlers, by asterisque.state: busy or idle
//	asterisque.budget.held        bytes that count for the budget of the node
//	asterisque.budget.size        size of the budget, in bytes
//	asterisque.workers.wanted     sessions that wait for a worker of the node
//	asterisque.path.sessions      sessions by asterisque.bound, the limit of their rate; see [asterisque.Path]
//	asterisque.path.in_flight     bytes that were sent and are not known to have been read
//	asterisque.path.rate          bytes a second that the paths of all sessions deliver, as far as known
//	asterisque.path.round_trip    known round trips to the peers, in seconds, by asterisque.quantile
//	asterisque.function.calls     calls of peers that arrived, since the beginning
//	asterisque.function.failures  failed calls of peers, by error.type
//	asterisque.function.queued    time that calls waited for a worker, in seconds, by asterisque.quantile
//	asterisque.function.ran       run time of handlers, in seconds, by asterisque.quantile
//
// The last four have the attributes asterisque.function (the number) and rpc.method (the name).
// They describe the node's own service; see [asterisque.Service.Stats].
func Observe(meter metric.Meter, node *asterisque.Node, attrs ...attribute.KeyValue) (unregister func() error, err error) {
	o := observer{node: node, attrs: slices.Clone(attrs)}
	all, err := o.instruments(meter)
	if err != nil {
		return nil, err
	}
	r, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		o.observe(to)
		return nil
	}, all...)
	if err != nil {
		return nil, err
	}
	return r.Unregister, nil
}

// observer is immutable.
type observer struct {
	node  *asterisque.Node
	attrs []attribute.KeyValue

	sessions, limits, pipes, waiting, running, messages, bytes, workers, wanted, budgetHeld, budget metric.Int64ObservableUpDownCounter
	room, promised, held, parked, wait                                                              metric.Int64ObservableUpDownCounter
	calls, failures, waits                                                                          metric.Int64ObservableCounter
	waited                                                                                          metric.Float64ObservableCounter
	queued, ran                                                                                     metric.Float64ObservableGauge

	paths pathInstruments
}

// instruments creates all instruments.
func (o *observer) instruments(meter metric.Meter) (all []metric.Observable, err error) {
	all, err = o.paths.instruments(meter)
	for _, i := range []struct {
		to                *metric.Int64ObservableUpDownCounter
		name, unit, about string
	}{
		{&o.sessions, "asterisque.sessions", "{session}", "Sessions that are up."},
		{&o.limits, "asterisque.session.limits", "{session}", "Sessions by the state of their limits."},
		{&o.pipes, "asterisque.pipes", "{call}", "Running calls of both sides."},
		{&o.waiting, "asterisque.calls.waiting", "{call}", "Calls of peers that wait for a worker."},
		{&o.running, "asterisque.calls.running", "{call}", "Calls of peers with a running handler."},
		{&o.messages, "asterisque.held.messages", "{message}", "Messages that wait in sessions."},
		{&o.bytes, "asterisque.held.bytes", "By", "Bytes of messages that wait in sessions."},
		{&o.room, "asterisque.room.size", "By", "Bytes that sessions have for what peers may send."},
		{&o.promised, "asterisque.room.promised", "By", "Bytes of room that peers were promised."},
		{&o.held, "asterisque.room.held", "By", "Bytes of room that are held, and those that running calls hold."},
		{&o.parked, "asterisque.answers.parked", "{answer}", "Answers of handlers that wait to be sent."},
		{&o.wait, "asterisque.waiting", "{wait}", "Current waits for room."},
		{&o.workers, "asterisque.workers", "{worker}", "Goroutines for handlers."},
		{&o.budgetHeld, "asterisque.budget.held", "By", "Bytes that count for the budget of the node."},
		{&o.budget, "asterisque.budget.size", "By", "Bytes that the node may hold for all its peers."},
		{&o.wanted, "asterisque.workers.wanted", "{session}", "Sessions that wait for a worker of the node."},
	} {
		var e error
		*i.to, e = meter.Int64ObservableUpDownCounter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about))
		all, err = append(all, *i.to), errors.Join(err, e)
	}
	for _, i := range []struct {
		to                *metric.Int64ObservableCounter
		name, unit, about string
	}{
		{&o.waits, "asterisque.waits", "{wait}", "How often something had to wait for room."},
		{&o.calls, "asterisque.function.calls", "{call}", "Calls of peers that arrived."},
		{&o.failures, "asterisque.function.failures", "{call}", "Calls of peers that failed."},
	} {
		var e error
		*i.to, e = meter.Int64ObservableCounter(i.name, metric.WithUnit(i.unit), metric.WithDescription(i.about))
		all, err = append(all, *i.to), errors.Join(err, e)
	}
	var e error
	o.waited, e = meter.Float64ObservableCounter("asterisque.waited", metric.WithUnit("s"), metric.WithDescription("For how long in all something had to wait for room."))
	all, err = append(all, o.waited), errors.Join(err, e)
	for _, i := range []struct {
		to          *metric.Float64ObservableGauge
		name, about string
	}{
		{&o.queued, "asterisque.function.queued", "How long calls waited for a worker."},
		{&o.ran, "asterisque.function.ran", "How long handlers took."},
	} {
		var e error
		*i.to, e = meter.Float64ObservableGauge(i.name, metric.WithUnit("s"), metric.WithDescription(i.about))
		all, err = append(all, *i.to), errors.Join(err, e)
	}
	return all, err
}

// observe reports the present state of the node.
func (o *observer) observe(to metric.Observer) {
	st := o.node.Stats()
	total := &st.Total
	to.ObserveInt64(o.sessions, int64(st.Sessions), o.with())
	to.ObserveInt64(o.pipes, int64(total.Pipes), o.with())
	to.ObserveInt64(o.waiting, int64(total.Waiting), o.with())
	to.ObserveInt64(o.running, int64(total.Running), o.with())
	for d, held := range map[asterisque.Direction]limits.Amount{asterisque.Inbound: total.Inbound, asterisque.Outbound: total.Outbound} {
		to.ObserveInt64(o.messages, int64(held.Messages), o.with(directionKey.String(d.String())))
		to.ObserveInt64(o.bytes, int64(held.Bytes), o.with(directionKey.String(d.String())))
	}
	to.ObserveInt64(o.workers, int64(st.Busy), o.with(stateKey.String("busy")))
	to.ObserveInt64(o.workers, int64(st.IdleWorkers), o.with(stateKey.String("idle")))
	to.ObserveInt64(o.wanted, int64(st.Crowded), o.with())
	to.ObserveInt64(o.budgetHeld, int64(st.Held), o.with())
	to.ObserveInt64(o.budget, int64(st.Budget), o.with())
	o.observeRoom(to, total)
	o.observeWaits(to, total)
	o.observeSessions(to)
	for i := range st.Functions {
		o.observeFunction(to, &st.Functions[i])
	}
}

// observeRoom reports the use of the room of all sessions.
func (o *observer) observeRoom(to metric.Observer, total *asterisque.Stats) {
	c := &total.Classes
	for name, share := range map[string]asterisque.Share{"calls": c.Calls, "nested": c.Nested, "served": c.Served, "made": c.Made, "large": c.Large, "elastic": c.Elastic} {
		with := o.with(shareKey.String(name))
		to.ObserveInt64(o.room, int64(share.Room), with)
		to.ObserveInt64(o.promised, int64(share.Promised), with)
		to.ObserveInt64(o.held, int64(share.Held), with)
	}
	to.ObserveInt64(o.held, int64(total.Holding), o.with(shareKey.String("running")))
	to.ObserveInt64(o.parked, int64(total.Parked), o.with())
}

// observeWaits reports current and past waits for room.
func (o *observer) observeWaits(to metric.Observer, total *asterisque.Stats) {
	for reason, w := range map[string]asterisque.Wait{"place": total.WaitPlace, "window": total.WaitWindow, "opens": total.WaitOpens, "outbound": total.WaitOutbound} {
		with := o.with(reasonKey.String(reason))
		to.ObserveInt64(o.wait, int64(w.Now), with)
		to.ObserveInt64(o.waits, int64(w.Times), with)
		to.ObserveFloat64(o.waited, w.For.Seconds(), with)
	}
	to.ObserveInt64(o.wait, int64(total.Classes.Large.Waiting), o.with(reasonKey.String("large")))
	to.ObserveInt64(o.waits, int64(total.Stops), o.with(reasonKey.String("reader")))
	to.ObserveFloat64(o.waited, total.Stopped.Seconds(), o.with(reasonKey.String("reader")))
}

// observeSessions reports values that the node does not add up: the number of sessions in each
// state, and their path estimates.
func (o *observer) observeSessions(to metric.Observer) {
	var in, out [limits.Hard + 1]int64
	var p pathTotals
	for _, s := range o.node.Sessions() {
		st := s.Stats()
		in[st.InboundState]++
		out[st.OutboundState]++
		p.add(st.Path)
	}
	o.observePaths(to, &p)
	for state := range limits.Hard + 1 {
		to.ObserveInt64(o.limits, in[state], o.with(directionKey.String(asterisque.Inbound.String()), stateKey.String(state.String())))
		to.ObserveInt64(o.limits, out[state], o.with(directionKey.String(asterisque.Outbound.String()), stateKey.String(state.String())))
	}
}

func (o *observer) observeFunction(to metric.Observer, f *asterisque.FunctionStats) {
	number, name := functionKey.Int(int(f.Number)), method(f.Name)
	to.ObserveInt64(o.calls, int64(f.Calls), o.with(number, name))
	for class, n := range f.Failed {
		to.ObserveInt64(o.failures, int64(n), o.with(number, name, semconv.ErrorTypeKey.String(class)))
	}
	for _, l := range []struct {
		to metric.Float64ObservableGauge
		of asterisque.Latency
	}{{o.queued, f.Queued}, {o.ran, f.Ran}} {
		if l.of.Timed == 0 {
			continue
		}
		to.ObserveFloat64(l.to, l.of.P50.Seconds(), o.with(number, name, quantileKey.String("0.5")))
		to.ObserveFloat64(l.to, l.of.P95.Seconds(), o.with(number, name, quantileKey.String("0.95")))
		to.ObserveFloat64(l.to, l.of.P99.Seconds(), o.with(number, name, quantileKey.String("0.99")))
	}
}

// with returns the attributes of an observation.
func (o *observer) with(attrs ...attribute.KeyValue) metric.ObserveOption {
	return metric.WithAttributes(append(attrs, o.attrs...)...)
}
