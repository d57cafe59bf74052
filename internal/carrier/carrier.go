// Package carrier is one session's way over its present Wire: who writes and when, the loop that
// reads, what tells that the peer lives, and how a session leaves one Wire and goes on over the
// next.
//
// A Carrier knows no calls. What arrives goes up to an [Upper], which is the session; what leaves
// comes from above as messages of package outbox, with the word when they are to go.
//
// One goroutine reads, and at most one writes. The reader owns the Wire: it notices the loss of it,
// waits until nobody writes any more, and then lets the Carrier be away, without a goroutine. From
// then on the Carrier belongs to whoever claims it: to go on over another Wire, or to end it. So
// nothing of an old Wire is read once another one is there.
package carrier

import (
	"cmp"
	"context"
	"crypto/tls"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Config is what a Carrier begins with.
type Config struct {
	*Settings
	Upper   Upper
	Context context.Context         // ends with the session; its cause is why, an *codec.Abort
	End     context.CancelCauseFunc // of Context; the Carrier calls it
	Wire    wire.Wire
	TLS     *tls.ConnectionState // of the Wire; nil without
	// the place of the Wire at the door, which is left when the Wire is closed; nil without
	Place    transport.Place
	Out      *outbox.Outbox
	Inbound  *limits.Counter
	Outbound *limits.Counter
	Tally    *limits.Tally // counts the bytes of a message of which only a part has arrived
	Largest  int           // bytes of the largest message that the peer may send

	Pings Pings

	// the session can go on over another Wire. Then the outbox keeps what the peer has not
	// acknowledged, and the Controls of that may hold KeptControls bytes.
	Resumes      bool
	KeptControls int
}

// Carrier carries the frames of one session. All methods are safe for concurrent use, but for those
// that say that they are the reader's.
type Carrier struct {
	base // locks itself, as all below

	writer writer
	reader reader
	hold   hold
	live   liveness
	pongs  pongs
	stall  atomic.Pointer[stall] // nil until the session stands at its inbound soft limit

	ending sync.Once
	at     int32                   // see watched
	cancel context.CancelCauseFunc // fixed
	linger *time.Timer             // closes the Wire some time after the end; set by ending
	gone   signal                  // when nobody reads or writes any more, nor ever will
}

// Init prepares c. It is followed by Run, or by Discard.
func (c *Carrier) Init(cfg *Config) {
	b := &c.base
	*b = base{
		Settings: cfg.Settings, host: c, up: cfg.Upper, ctx: cfg.Context,
		out: cfg.Out, inbound: cfg.Inbound, outbound: cfg.Outbound,
	}
	b.way.set(cfg.Wire, cfg.TLS, cfg.Place)
	c.cancel = cfg.End
	c.writer.base = b
	c.hold.base, c.hold.writer = b, &c.writer
	c.live.hold = &c.hold
	c.live.agree(cfg.Pings)
	if !cfg.Pings.Mute {
		c.out.Mark((*marker)(b))
	}
	c.live.part.Begin(cfg.Tally)
	var a *acks
	if cfg.Resumes {
		a = &acks{writer: &c.writer}
		c.writer.halted = make(chan struct{}, 1)
		c.out.Keep(a.got.Load, cfg.KeptControls)
	} else if _, ok := cfg.Wire.(wire.VectorWriter); ok {
		c.out.Lend()
	}
	c.reader.hold, c.reader.acks = &c.hold, a
	c.reader.most = uint32(cfg.Largest)
	if !isForeign(cfg.Wire) {
		c.out.Divide(cmp.Or(cfg.MaxPart, message.MaxPart))
	}
}

// Run begins to read.
func (c *Carrier) Run() {
	c.Lookout.add(c)
	go c.run(c.read) // ends with the Wire
}

// Discard lets go of a Carrier that does not run, and of its Wire.
func (c *Carrier) Discard() {
	c.live.part.End()
	c.closeWire()
}

// Wire returns the present Wire, or the last one, and what TLS knows of it.
func (c *Carrier) Wire() (w wire.Wire, secure *tls.ConnectionState) { return c.way.present() }

// State returns how far the Carrier has got.
func (c *Carrier) State() State { return c.way.current() }

// Away reports whether the Wire is lost, and another one is waited for.
func (c *Carrier) Away() bool { return c.State().away() }

// Receiving returns how many bytes messages hold of which only a part has arrived. Of the frame
// that is arriving it tells only if the Wire does.
func (c *Carrier) Receiving() int {
	w, _ := c.way.present()
	return receiving(w) + c.held()
}

// Forget lets go of what is unfinished of a pipe, which is over.
func (c *Carrier) Forget(pipe uint64) {
	if p := c.base.parts.Load(); p != nil {
		p.drop(pipe)
	}
}

// HasPart reports whether a message of a pipe is unfinished.
func (c *Carrier) HasPart(pipe uint64) bool {
	p := c.base.parts.Load()
	return p != nil && p.has(pipe)
}

// Path returns what is known of the path.
func (c *Carrier) Path() Path { return c.path(time.Duration(c.live.trip.Load())) }

// Stops returns how often reading had to stop at the inbound soft limit, and for how long in all.
func (c *Carrier) Stops() (times uint64, elapsed time.Duration) {
	if s := c.hold.stops.Load(); s != nil {
		return s.times.Load(), time.Duration(s.elapsed.Load())
	}
	return 0, 0
}

// Received returns how many countable frames have arrived and been dealt with.
func (c *Carrier) Received() uint64 { return c.reader.acks.got.Load() }

// Has reports whether the Carrier can still send what the peer lacks, if the peer has received so
// many frames.
func (c *Carrier) Has(received uint64) bool { return c.out.Has(received) }

// Gone returns a channel that is closed when the Carrier has let go of everything.
func (c *Carrier) Gone() <-chan struct{} { return c.gone.fired() }

// Pause stops reading, after the frame that is being dealt with, until Unpause.
func (c *Carrier) Pause() { c.hold.pause.begin() }

// Unpause goes on with reading.
func (c *Carrier) Unpause() { c.hold.pause.end() }

// InboundChanged is to be called with each new state of the inbound counter.
func (c *Carrier) InboundChanged(state limits.State) {
	if state == limits.Soft && c.stall.Load() == nil {
		c.stall.CompareAndSwap(nil, &stall{base: &c.base, live: &c.live})
	}
	if w := c.stall.Load(); w != nil {
		w.changed(state)
	}
}

// EnterCode says that the reader is about to run code of the application. Until LeaveCode the peer
// is not given up for what is not read, and [Carrier.Wait] does not wait for the reader.
func (c *Carrier) EnterCode() { c.meter.busy.Add(insideCode) }

// LeaveCode ends what EnterCode has begun.
func (c *Carrier) LeaveCode() { c.meter.busy.Add(-insideCode) }
