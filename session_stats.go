package asterisque

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque/limits"
)

// Stats is a snapshot of a session. As JSON it suits expvar, as a slog.LogValuer logs.
type Stats struct {
	Pipes   int `json:"pipes"`   // running calls of both sides
	Waiting int `json:"waiting"` // calls of the peer that nobody has taken yet
	// calls of the peer whose handlers run, inline ones apart
	Running     int    `json:"running"`
	MostWaiting int    `json:"most_waiting"` // Waiting at its highest
	MostRunning int    `json:"most_running"` // Running at its highest
	Made        uint64 `json:"made"`         // calls of this side since the beginning
	// calls of the peer since the beginning, refused ones included
	Served uint64 `json:"served"`

	// received and not yet taken by the application
	Inbound  limits.Amount `json:"inbound"`
	Outbound limits.Amount `json:"outbound"` // sent and not yet given to the Wire
	// the most messages, and the most bytes, at any time
	MostInbound   limits.Amount `json:"most_inbound"`
	MostOutbound  limits.Amount `json:"most_outbound"`
	InboundState  limits.State  `json:"inbound_state"`
	OutboundState limits.State  `json:"outbound_state"`

	// how often reading had to stop at the inbound soft limit: never with peers that keep to what
	// they were promised
	Stops   uint64        `json:"stops"`
	Stopped time.Duration `json:"stopped_ns"` // for how long in all

	// answers that wait to be sent, which count among Running if their calls had a worker
	Parked int `json:"parked"`
	// bytes that running calls hold: parameters, what these become when they are decoded (as
	// estimated before), what the calls are themselves, and answers that wait
	Holding int `json:"holding"`

	// bytes that are set aside for a message of which a part has arrived; 0 if the Wire does not
	// tell: see wire.Meter
	Receiving int `json:"receiving"`

	// what peers were promised for calls that wait for a worker, in bytes of cost
	Opens  Share `json:"opens"`
	Nested Share `json:"nested"` // for calls within calls
	Blocks Share `json:"blocks"` // for the Blocks of streams; Held is what windows hold
	Large  Share `json:"large"`  // for Blocks that do not fit into their windows

	// streams of this side that waited for room here for a window
	WaitWindow Wait `json:"wait_window"`
	WaitOpens  Wait `json:"wait_opens"` // calls of this side that waited for room at the peer
	// what waited at the outbound soft limit, answers aside
	WaitOutbound Wait `json:"wait_outbound"`
	// pipes that wait for room for a large Block, and whose applications wait for it
	Asking int `json:"asking"`

	// what is known of the way to the peer; of one session only, and zero where many are added up
	Path Path `json:"path"`
}

// Share is one part of the room of a session: see docs/limits.md.
type Share struct {
	Room int `json:"room"` // all of it, in bytes of cost; 0 is no bound
	// what the peer may send without asking, and what it has sent and still holds room
	Promised int `json:"promised"`
	Held     int `json:"held"` // of that, what has come
}

// String returns s for logs.
func (s Share) String() string {
	return fmt.Sprintf("%d bytes held, %d promised, of %d", s.Held, s.Promised, s.Room)
}

// loadRoom fills in what is promised, and who waits.
func (st *Stats) loadRoom(o *outgoing) {
	st.WaitWindow, st.WaitOpens, st.WaitOutbound = o.waits.load(waitWindow), o.waits.load(waitOpens), o.waits.load(waitOutbound)
	if o.terms.Room == nil {
		return
	}
	p, l := o.terms.Room.Plan(), o.terms.Room.Load()
	st.Blocks = Share{Room: (p.Workers+p.Callers)*p.Window + p.Spare, Promised: l.Windows, Held: l.Windows}
	st.Large = Share{Room: p.Large, Promised: l.Large, Held: l.Large}
	st.Asking = l.Asking
}

// loadWork fills in what is known of the calls of the peer.
func (st *Stats) loadWork(d *dispatcher) {
	w := d.load()
	st.Waiting, st.Running, st.MostWaiting, st.MostRunning = w.waiting, w.running, w.mostWaiting, w.mostRunning
	st.Served, st.Parked = w.served, w.parked
	st.Holding = w.held + w.unparked*(heldPlace+heldUnary) + w.streams*(heldStream-heldUnary)
	st.Opens = Share{Room: w.opens.Room(), Promised: w.opens.Promised(), Held: w.opens.Held()}
	st.Nested = Share{Room: w.most, Promised: w.most, Held: w.nested}
}

// Stats returns what the session holds now. The numbers are read one after the other, not in one
// instant.
func (s *Session) Stats() Stats {
	var st Stats
	if s == nil {
		return st
	}
	st.load(s)
	st.Receiving = s.carrier.Receiving()
	return st
}

// load fills in what s holds, but for what the Wire has to say, which may be the application's.
func (st *Stats) load(s *Session) {
	st.Pipes, st.Made = s.table.len(), s.table.opened()
	st.Inbound, st.MostInbound, st.InboundState = s.inbound.Held(), s.inbound.Peak(), s.inbound.State()
	st.Outbound, st.MostOutbound, st.OutboundState = s.outbound.Held(), s.outbound.Peak(), s.outbound.State()
	st.Stops, st.Stopped = s.carrier.Stops()
	st.loadWork(&s.calls)
	st.loadRoom(&s.outgoing)
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
		slog.Any("opens", st.Opens), slog.Any("nested", st.Nested), slog.Any("blocks", st.Blocks), slog.Any("large", st.Large),
		slog.Any("wait_window", st.WaitWindow), slog.Any("wait_opens", st.WaitOpens), slog.Any("wait_outbound", st.WaitOutbound),
		slog.Int("asking", st.Asking), slog.Any("path", st.Path),
	)
}

// end leaves those numbers of a session that has ended which count since the beginning.
func (st *Stats) end() {
	*st = Stats{
		Made: st.Made, Served: st.Served, Stops: st.Stops, Stopped: st.Stopped,
		WaitWindow: st.WaitWindow.ended(), WaitOpens: st.WaitOpens.ended(), WaitOutbound: st.WaitOutbound.ended(),
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
	st.Opens.add(o.Opens)
	st.Nested.add(o.Nested)
	st.Blocks.add(o.Blocks)
	st.Large.add(o.Large)
	st.WaitWindow.add(o.WaitWindow)
	st.WaitOpens.add(o.WaitOpens)
	st.WaitOutbound.add(o.WaitOutbound)
	st.Asking += o.Asking
}

func (s *Share) add(o Share) {
	s.Room += o.Room
	s.Promised += o.Promised
	s.Held += o.Held
}

func sum(a, b limits.Amount) limits.Amount {
	return limits.Amount{Messages: a.Messages + b.Messages, Bytes: a.Bytes + b.Bytes}
}

func most(a, b limits.Amount) limits.Amount {
	return limits.Amount{Messages: max(a.Messages, b.Messages), Bytes: max(a.Bytes, b.Bytes)}
}
