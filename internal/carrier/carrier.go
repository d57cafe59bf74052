// Package carrier runs one session over its present Wire: the writer, the loop that reads, the
// keepalive, and the change from a lost Wire to the next one.
//
// A Carrier does not know calls. It passes received frames to a [Receiver], and events of its life
// to the [Session]. Messages to send come from above as messages of package outbox, with the time
// at which to write them.
//
// One goroutine reads, and at most one writes. The reader owns the Wire. When the Wire is lost, the
// reader waits until the writer has ended, and leaves the Carrier in state Away, without a
// goroutine. From then on the Carrier belongs to the goroutine that claims it, either to resume
// over another Wire or to end the session. So no frame of an old Wire is read once another Wire is
// there.
package carrier

import (
	"cmp"
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Config configures a Carrier.
type Config struct {
	*Settings
	Receiver Receiver
	Session  Session
	Context  context.Context         // ends with the session; its cause is an *codec.Abort
	End      context.CancelCauseFunc // cancels Context; the Carrier calls it
	Wire     wire.Wire
	TLS      *tls.ConnectionState // of the Wire; nil without TLS
	// the admission place of the Wire, which is left when the Wire is closed; nil without
	Place    transport.Place
	Out      *outbox.Outbox
	Inbound  *flow.Counter
	Outbound *flow.Counter
	Tally    *flow.Tally // counts the bytes of a message that is still arriving
	Largest  int         // bytes of the largest message that the peer may send

	Pings Pings

	// Resumes says that the session can resume over another Wire. Then the outbox keeps the frames
	// that the peer has not acknowledged. Their Controls may hold KeptControls bytes.
	Resumes      bool
	KeptControls int
}

// Carrier carries the frames of one session. All methods are safe for concurrent use, except for
// those documented as for the reader.
type Carrier struct {
	carrierBase // locks itself, as do all below

	writer writer
	reader reader
	hold   readHold
	live   liveness
	pongs  pongs
	stall  atomic.Pointer[stallDetector] // nil until the session is at its inbound soft limit

	ending sync.Once
	at     int32                   // see keepaliveClient
	cancel context.CancelCauseFunc // fixed
	linger *time.Timer             // closes the Wire some time after the end; set by ending
	gone   signal                  // fired when reading and writing have ended for good
}

// Init prepares c. The caller calls Run or Discard next.
func (c *Carrier) Init(cfg *Config) {
	b := &c.carrierBase
	*b = carrierBase{
		Settings: cfg.Settings, host: c, receiver: cfg.Receiver, session: cfg.Session, ctx: cfg.Context,
		out: cfg.Out, inbound: cfg.Inbound, outbound: cfg.Outbound,
	}
	b.transport.set(cfg.Wire, cfg.TLS, cfg.Place)
	c.cancel = cfg.End
	c.writer.carrierBase = b
	c.hold.carrierBase, c.hold.writer = b, &c.writer
	c.live.readHold = &c.hold
	c.live.agree(cfg.Pings)
	if !cfg.Pings.Mute {
		c.out.Mark((*marker)(b))
	}
	c.live.part.Begin(cfg.Tally)
	var a *ackCounter
	if cfg.Resumes {
		a = &ackCounter{writer: &c.writer}
		c.writer.halted = make(chan struct{}, 1)
		c.out.Keep(a.got.Load, cfg.KeptControls)
	} else if _, ok := cfg.Wire.(wire.VectorWriter); ok {
		c.out.Lend()
	}
	c.reader.readHold, c.reader.acks = &c.hold, a
	c.reader.most = uint32(cfg.Largest)
	if !isForeign(cfg.Wire) {
		c.out.Divide(cmp.Or(cfg.MaxPart, message.MaxPart))
	}
}

// Run starts the reader.
func (c *Carrier) Run() {
	c.Keepalive.add(c)
	go c.run(c.read) // ends with the Wire
}

// Discard releases a Carrier that does not run, and its Wire.
func (c *Carrier) Discard() {
	c.live.part.End()
	c.closeWire()
}

// Wire returns the present Wire, or the last one, and its TLS state.
func (c *Carrier) Wire() (w wire.Wire, secure *tls.ConnectionState) { return c.transport.present() }

// State returns the state of the Carrier.
func (c *Carrier) State() State { return c.transport.current() }

// Away reports whether the Wire is lost and the Carrier waits for another one.
func (c *Carrier) Away() bool { return c.State().away() }

// Receiving returns the bytes that partly received messages hold. The frame that is arriving counts
// only if the Wire reports its bytes.
func (c *Carrier) Receiving() int {
	w, _ := c.transport.present()
	return receiving(w) + c.held()
}

// Forget releases the unfinished message of a pipe that has ended.
func (c *Carrier) Forget(pipe uint64) {
	if p := c.carrierBase.parts.Load(); p != nil {
		p.drop(pipe)
	}
}

// Ignore releases the memory of the unfinished message of a pipe, and ignores its remaining parts.
func (c *Carrier) Ignore(pipe uint64) {
	if p := c.carrierBase.parts.Load(); p != nil {
		p.ignore(pipe)
	}
}

// HasPart reports whether a message of a pipe is unfinished.
func (c *Carrier) HasPart(pipe uint64) bool {
	p := c.carrierBase.parts.Load()
	return p != nil && p.has(pipe)
}

// Path returns the current measurements of the path.
func (c *Carrier) Path() Path { return c.path(time.Duration(c.live.trip.Load())) }

// Stops returns how often reading has stopped at the inbound soft limit, and the total time.
func (c *Carrier) Stops() (times uint64, elapsed time.Duration) {
	if s := c.hold.stops.Load(); s != nil {
		return s.times.Load(), time.Duration(s.elapsed.Load())
	}
	return 0, 0
}

// Received returns the number of countable frames that have arrived and been processed.
func (c *Carrier) Received() uint64 { return c.reader.acks.got.Load() }

// Has reports whether the Carrier can still send all frames that the peer lacks, given the number
// of frames that the peer has received.
func (c *Carrier) Has(received uint64) bool { return c.out.Has(received) }

// Gone returns a channel that is closed when the Carrier has released everything.
func (c *Carrier) Gone() <-chan struct{} { return c.gone.fired() }

// StopReading stops reading after the current frame, until StartReading.
func (c *Carrier) StopReading() { c.hold.pause.begin() }

// StartReading resumes reading.
func (c *Carrier) StartReading() { c.hold.pause.end() }

// InboundChanged is called with each new state of the inbound counter.
func (c *Carrier) InboundChanged(state limits.State) {
	if state == limits.Soft && c.stall.Load() == nil {
		c.stall.CompareAndSwap(nil, &stallDetector{carrierBase: &c.carrierBase, live: &c.live})
	}
	if w := c.stall.Load(); w != nil {
		w.changed(state)
	}
}

// EnterCode announces that the reader is about to run application code. Until LeaveCode, unread
// frames do not count as silence of the peer, and [Carrier.Wait] does not wait for the reader.
func (c *Carrier) EnterCode() { c.meter.busy.Add(insideCode) }

// LeaveCode ends the section that EnterCode began.
func (c *Carrier) LeaveCode() { c.meter.busy.Add(-insideCode) }

// Context returns the context of the session, which ends with it: the cause is the reason.
func (c *Carrier) Context() context.Context { return c.ctx }
