package asterisque

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// Stats is a snapshot of a session. It can be encoded as JSON for expvar, and is a slog.LogValuer.
type Stats struct {
	Pipes   int `json:"pipes"`   // running calls of both sides
	Waiting int `json:"waiting"` // calls of the peer that wait for a worker
	// running calls of the peer, without inline ones
	Running     int    `json:"running"`
	MostWaiting int    `json:"most_waiting"` // maximum of Waiting
	MostRunning int    `json:"most_running"` // maximum of Running
	Made        uint64 `json:"made"`         // calls of this side since the beginning
	// calls of the peer since the beginning, including rejected ones
	Served uint64 `json:"served"`

	// received, and not yet taken by the application
	Inbound  limits.Amount `json:"inbound"`
	Outbound limits.Amount `json:"outbound"` // sent, and not yet given to the Wire
	// maxima of messages and of bytes
	MostInbound   limits.Amount `json:"most_inbound"`
	MostOutbound  limits.Amount `json:"most_outbound"`
	InboundState  limits.State  `json:"inbound_state"`
	OutboundState limits.State  `json:"outbound_state"`

	// how often reading stopped at the inbound soft limit: never with peers that keep to their
	// grants
	Stops   uint64        `json:"stops"`
	Stopped time.Duration `json:"stopped_ns"` // total time

	// answers that wait to be sent; they count in Running if their calls had a worker
	Parked int `json:"parked"`
	// bytes of running calls: parameters, their decoded form (estimated beforehand), the calls
	// themselves, and answers that wait
	Holding int `json:"holding"`

	// bytes reserved for a message of which a part has arrived; 0 if the Wire does not report it:
	// see wire.Meter
	Receiving int `json:"receiving"`

	// the inbound budget by its classes: see docs/limits.md
	Classes Classes `json:"classes"`

	// calls of this side that waited for others of their function to end: WithMaxOutstanding
	WaitPlace Wait `json:"wait_place"`
	// streams of this side that waited for budget here for a window
	WaitWindow Wait `json:"wait_window"`
	WaitOpens  Wait `json:"wait_opens"` // calls of this side that waited for budget of the peer
	// messages that waited at the outbound soft limit, without answers
	WaitOutbound Wait `json:"wait_outbound"`

	// estimate of the path to the peer; zero in sums of several sessions
	Path Path `json:"path"`
}

// Classes is the inbound budget of a session, in bytes of cost: what the peer may send without
// asking, and what it has sent. No class takes the room of another one, but Made and Large take
// elastic room, too.
type Classes struct {
	Calls   Share `json:"calls"`   // calls that wait for a worker
	Nested  Share `json:"nested"`  // nested calls of the peer, and own windows within calls
	Served  Share `json:"served"`  // guaranteed windows of running handlers
	Made    Share `json:"made"`    // guaranteed windows of streams that this side has opened
	Large   Share `json:"large"`   // rest of a Block that is larger than its window
	Elastic Share `json:"elastic"` // growth of windows, extra credit, and what does not fit above
}

// Windows returns the sum of the classes that are windows of streams: Served, Made and Elastic.
// Held leaves out the extra credit that no stream has taken.
func (c Classes) Windows() (sum Share) {
	for _, s := range [...]Share{c.Served, c.Made, c.Elastic} {
		sum.add(s)
	}
	return sum
}

// LogValue implements slog.LogValuer.
func (c Classes) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Any("calls", c.Calls), slog.Any("nested", c.Nested), slog.Any("served", c.Served),
		slog.Any("made", c.Made), slog.Any("large", c.Large), slog.Any("elastic", c.Elastic),
	)
}

// add adds the classes of another session.
func (c *Classes) add(o *Classes) {
	c.Calls.add(o.Calls)
	c.Nested.add(o.Nested)
	c.Served.add(o.Served)
	c.Made.add(o.Made)
	c.Large.add(o.Large)
	c.Elastic.add(o.Elastic)
}

// Share is one class of the inbound budget of a session.
type Share struct {
	Room int `json:"room"` // minimum, in bytes of cost; 0: no bound
	// bytes that the peer may send without asking, and those that it has sent and that are still
	// held. Promised can exceed Room only after SetLimits
	Promised int `json:"promised"`
	Held     int `json:"held"` // of Promised, without credit that no stream or call has taken
	// calls that wait for a worker; of Made streams that wait for a window; of Large pipes with an
	// application that waits for a large Block
	Waiting int `json:"waiting"`
}

// String returns s for logs.
func (s Share) String() string {
	return fmt.Sprintf("%d bytes held, %d promised, of %d, %d wait", s.Held, s.Promised, s.Room, s.Waiting)
}

// Stats returns the current statistics of the session. The numbers are read one after the other,
// not in one instant.
func (s *Session) Stats() Stats {
	var st Stats
	if s == nil {
		return st
	}
	st.load(s)
	st.Receiving = s.calls.Carrier.Receiving()
	return st
}

// load sets the numbers of s, but for those of the Wire, which may be the application's.
func (st *Stats) load(s *Session) {
	l := s.calls.Load()
	st.Pipes, st.Made, st.Served, st.Parked, st.Holding = l.Pipes, l.Made, l.Served, l.Parked, l.Holding
	st.Waiting, st.Running, st.MostWaiting, st.MostRunning = l.Waiting, l.Running, l.MostWaiting, l.MostRunning
	st.Inbound, st.MostInbound, st.InboundState = l.Inbound.Held, l.Inbound.Most, l.Inbound.State
	st.Outbound, st.MostOutbound, st.OutboundState = l.Outbound.Held, l.Outbound.Most, l.Outbound.State
	c := &l.Classes
	st.Classes = Classes{Share(c.Calls), Share(c.Nested), Share(c.Served), Share(c.Made), Share(c.Large), Share(c.Elastic)}
	st.WaitPlace = Wait(l.WaitPlace)
	st.WaitWindow, st.WaitOpens, st.WaitOutbound = Wait(l.WaitWindow), Wait(l.WaitOpens), Wait(l.WaitLimit)
	st.Stops, st.Stopped = s.calls.Carrier.Stops()
	st.Path = pathOf(s)
}

// LogValue implements slog.LogValuer.
func (st Stats) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Int("pipes", st.Pipes), slog.Int("waiting", st.Waiting), slog.Int("running", st.Running), slog.Uint64("made", st.Made), slog.Uint64("served", st.Served),
		slog.Any("inbound", st.Inbound), slog.Any("inbound_state", st.InboundState),
		slog.Any("outbound", st.Outbound), slog.Any("outbound_state", st.OutboundState),
		slog.Uint64("stops", st.Stops), slog.Duration("stopped", st.Stopped),
		slog.Int("parked", st.Parked), slog.Int("holding", st.Holding), slog.Int("receiving", st.Receiving),
		slog.Any("classes", st.Classes),
		slog.Any("wait_place", st.WaitPlace), slog.Any("wait_window", st.WaitWindow), slog.Any("wait_opens", st.WaitOpens), slog.Any("wait_outbound", st.WaitOutbound),
		slog.Any("path", st.Path),
	)
}

// end keeps the cumulative numbers of a session that has ended, and clears all other ones.
func (st *Stats) end() {
	*st = Stats{
		Made: st.Made, Served: st.Served, Stops: st.Stops, Stopped: st.Stopped,
		WaitPlace: st.WaitPlace.ended(), WaitWindow: st.WaitWindow.ended(), WaitOpens: st.WaitOpens.ended(), WaitOutbound: st.WaitOutbound.ended(),
	}
}

// add adds the numbers of another session.
func (st *Stats) add(o *Stats) {
	st.Pipes += o.Pipes
	st.Waiting += o.Waiting
	st.Running += o.Running
	st.MostWaiting = max(st.MostWaiting, o.MostWaiting)
	st.MostRunning = max(st.MostRunning, o.MostRunning)
	st.Made += o.Made
	st.Served += o.Served
	st.Inbound = sum(st.Inbound, o.Inbound)
	st.Outbound = sum(st.Outbound, o.Outbound)
	st.MostInbound = most(st.MostInbound, o.MostInbound)
	st.MostOutbound = most(st.MostOutbound, o.MostOutbound)
	st.InboundState = max(st.InboundState, o.InboundState)
	st.OutboundState = max(st.OutboundState, o.OutboundState)
	st.Stops += o.Stops
	st.Stopped += o.Stopped
	st.Parked += o.Parked
	st.Holding += o.Holding
	st.Receiving += o.Receiving
	st.Classes.add(&o.Classes)
	st.WaitPlace.add(o.WaitPlace)
	st.WaitWindow.add(o.WaitWindow)
	st.WaitOpens.add(o.WaitOpens)
	st.WaitOutbound.add(o.WaitOutbound)
}

func (s *Share) add(o Share) {
	s.Room += o.Room
	s.Promised += o.Promised
	s.Held += o.Held
	s.Waiting += o.Waiting
}

func sum(a, b limits.Amount) limits.Amount {
	return limits.Amount{Messages: a.Messages + b.Messages, Bytes: a.Bytes + b.Bytes}
}

func most(a, b limits.Amount) limits.Amount {
	return limits.Amount{Messages: max(a.Messages, b.Messages), Bytes: max(a.Bytes, b.Bytes)}
}

// Wait counts the waits for one resource.
type Wait struct {
	Now   int           `json:"now"`    // present waits
	Bytes int           `json:"bytes"`  // bytes that these hold: their messages are encoded
	Times uint64        `json:"times"`  // waits since the beginning
	For   time.Duration `json:"for_ns"` // total time of waits that have ended
}

// String returns w for logs.
func (w Wait) String() string {
	return fmt.Sprintf("%d now with %d bytes, %d times, %v", w.Now, w.Bytes, w.Times, w.For)
}

// ended returns the part of w that remains when no goroutine waits any more.
func (w Wait) ended() Wait { return Wait{Times: w.Times, For: w.For} }

func (w *Wait) add(o Wait) {
	w.Now += o.Now
	w.Bytes += o.Bytes
	w.Times += o.Times
	w.For += o.For
}

// NodeStats is a snapshot of a node. Its String is JSON: published with
// expvar.Publish("asterisque", expvar.Func(func() any { return node.Stats() })), it is part of the
// program's variables.
type NodeStats struct {
	ID       string `json:"id,omitempty"`
	Sessions int    `json:"sessions"` // that have not ended
	// sums over all sessions; counters include ended sessions; maxima and states are the highest of
	// all sessions; a share without a bound adds nothing to Room
	Total Stats `json:"total"`
	// bytes that count towards the budget, to within 48 KiB for each session
	Held   int `json:"held"`
	Budget int `json:"budget"` // of bytes; see Limits.Budget
	Busy   int `json:"busy"`   // workers that run handlers
	// of those, the ones lent to nested calls, and to calls of WatchHealth
	Lent        int `json:"lent"`
	MostBusy    int `json:"most_busy"`    // maximum of Busy
	IdleWorkers int `json:"idle_workers"` // kept for the next call
	// sessions that wait for workers of the node; see Workers.Node
	Crowded int `json:"crowded"`
	// of the node's own service; see Service.Stats for further services
	Functions []FunctionStats `json:"functions"`
}

// Stats returns the current statistics of the node. The numbers are read one after the other, not
// in one instant.
func (n *Node) Stats() NodeStats {
	if n.isZero() {
		return NodeStats{}
	}
	st := NodeStats{ID: n.cfg.id, Functions: n.cfg.service.Stats()}
	n.mu.Lock()
	st.Total = n.past
	n.mu.Unlock()
	for _, s := range n.Sessions() {
		st.Sessions++
		of := s.Stats()
		st.Total.add(&of)
	}
	st.Held, st.Budget = n.Owners.Held()
	c := n.scheduler.Stats()
	st.Busy, st.Lent, st.MostBusy, st.IdleWorkers, st.Crowded = c.Busy, c.Lent, c.Most, c.Idle, c.Waiting
	return st
}

// String returns st as JSON.
func (st NodeStats) String() string {
	b, err := json.Marshal(st)
	if err != nil {
		return err.Error() // impossible: every field has a JSON form
	}
	return string(b)
}

// LogValue implements slog.LogValuer.
func (st NodeStats) LogValue() slog.Value {
	return slog.GroupValue(slog.Int("sessions", st.Sessions), slog.Any("total", st.Total), slog.Int("busy", st.Busy), slog.Int("most_busy", st.MostBusy))
}

// Path is the estimate of a session for the path over its present Wire to the peer, in the outbound
// direction. The session measures with marks: Pings within large transfers. The answer to a mark
// confirms that the bytes before it have been read. The estimates are those of BBR (Cardwell et al.
// 2016). A session that sends little knows only the round trip.
type Path struct {
	RoundTrip time.Duration `json:"round_trip_ns"` // minimum of about ten seconds; 0: unknown
	Rate      float64       `json:"rate"`          // delivered bytes a second; 0: unknown
	// bytes that were sent and are not known to have been read
	InFlight int `json:"in_flight"`
	Limit    int `json:"limit"` // bytes that may be in flight; 0: no limit yet
	// present bound of the sending rate
	Bound PathBound `json:"bound"`
}

// String returns p for logs.
func (p Path) String() string {
	return fmt.Sprintf("%v, %.0f bytes/s, %d of %d bytes in flight, bound by the %s", p.RoundTrip, p.Rate, p.InFlight, p.Limit, p.Bound)
}

// LogValue implements slog.LogValuer.
func (p Path) LogValue() slog.Value {
	return slog.GroupValue(
		slog.Duration("round_trip", p.RoundTrip), slog.Float64("rate", p.Rate), slog.Int("in_flight", p.InFlight),
		slog.Int("limit", p.Limit), slog.String("bound", p.Bound.String()),
	)
}

// PathBound is the bound of a session's sending rate.
type PathBound uint8

const (
	BoundByApplication PathBound = iota // nothing waits: the application sends no more
	// streams wait until the peer's application has taken earlier Blocks
	BoundByWindow
	BoundByRoom // calls wait for budget of the peer, or streams for budget here
	BoundByPath // messages wait until the bytes in flight have been read
	BoundByPeer // as BoundByPath, but the peer has not read for long
)

var pathBounds = [...]string{"application", "window", "room", "path", "peer"}

// String returns "application", "window", "room", "path" or "peer".
func (b PathBound) String() string {
	if int(b) < len(pathBounds) {
		return pathBounds[b]
	}
	return fmt.Sprintf("PathBound(%d)", uint8(b))
}

// MarshalText implements encoding.TextMarshaler.
func (b PathBound) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. The error names an invalid text.
func (b *PathBound) UnmarshalText(text []byte) error {
	i := slices.Index(pathBounds[:], string(text))
	if i < 0 {
		return fmt.Errorf("asterisque: %q does not bound a path", text)
	}
	*b = PathBound(i)
	return nil
}

// Path returns the present estimate of the path to the peer. It does not block.
func (s *Session) Path() Path {
	if s == nil {
		return Path{}
	}
	return pathOf(s)
}

func pathOf(s *Session) Path {
	p := s.calls.Carrier.Path()
	return Path{RoundTrip: p.RoundTrip, Rate: p.Rate, InFlight: p.InFlight, Limit: p.Limit, Bound: boundOf(s, p.Full, p.Late)}
}

func boundOf(s *Session, full, late bool) PathBound {
	windows, room := s.calls.WaitsFor()
	switch {
	case late:
		return BoundByPeer
	case full:
		return BoundByPath
	case windows:
		return BoundByWindow
	case room:
		return BoundByRoom
	}
	return BoundByApplication
}
