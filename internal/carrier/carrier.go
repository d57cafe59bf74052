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
	"context"
	"crypto/tls"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// Upper is the session above a Carrier. Its methods are called without a lock.
type Upper interface {
	slog.LogValuer // the session's name in logs

	// Receive does what a frame says, which is a message of type t. The frame is valid only during
	// the call. An error ends the session. The reader calls it.
	Receive(t message.Type, frame []byte) error

	// Ended aborts all that runs, because of cause. It is called once, when nothing departs any
	// more but the goodbye.
	Ended(cause *codec.Abort)

	// Away is called when the Wire is lost because of cause, nobody writes any more, and the
	// Carrier is about to wait for another Wire.
	Away(cause *codec.Abort)

	// StillAway is called from time to time while the Carrier waits for another Wire.
	StillAway()

	// Back is called by the reader of another Wire, before it reads.
	Back()

	// Finished is called at the very end, once, when nobody reads or writes any more.
	Finished()
}

// Settings are what the Carriers of a node have in common. They do not change.
type Settings struct {
	Log *slog.Logger
	// after how long without sending a Ping is sent; 0: only if the peer asks for none
	PingInterval time.Duration
	PingTimeout  time.Duration // after how long without hearing the peer is lost
	WriteTimeout time.Duration // after how long without taking anything the peer is lost
	Stall        time.Duration // how long the application may take nothing at the soft limit
	ResumeFor    time.Duration // how long a Carrier that is away waits for another Wire
	Now          func() time.Duration
	Lookout      *Lookout
}

// Config is what a Carrier begins with.
type Config struct {
	*Settings
	Upper    Upper
	Context  context.Context         // ends with the session; its cause is why, an *codec.Abort
	End      context.CancelCauseFunc // of Context; the Carrier calls it
	Wire     wire.Wire
	TLS      *tls.ConnectionState // of the Wire; nil without
	Place    wire.Place           // what the Wire has at the door, which is left with it; nil without
	Out      *outbox.Outbox
	Inbound  *limits.Counter
	Outbound *limits.Counter
	Tally    *limits.Tally // counts what a message holds of which only a part has arrived
	Largest  int           // bytes of the largest frame that the peer may send

	Dialled bool // this side has connected
	Mute    bool // the peer need not answer Pings
	// what the peer has announced of itself; 0: nothing
	PeerInterval, PeerTimeout time.Duration

	// the session can go on over another Wire; then Controls that the peer does not acknowledge
	// may hold KeptControls bytes
	Resumes      bool
	KeptControls int
}

// Carrier carries the frames of one session. All methods are safe for concurrent use, but for those
// that say that they are the reader's.
type Carrier struct {
	*Settings // these are fixed
	up        Upper
	out       *outbox.Outbox
	inbound   *limits.Counter
	outbound  *limits.Counter
	largest   int
	ctx       context.Context // ends with the session; its cause is why
	cancel    context.CancelCauseFunc

	way   way // these lock themselves
	live  liveness
	pongs pongs
	acks  *acks // nil unless the session can go on over another Wire; fixed
	pause pause
	stall stall
	stops stops

	writers writers
	reader  reader // belongs to the reader

	ending sync.Once
	linger *time.Timer   // closes the Wire some time after the end of the session; set by ending
	gone   chan struct{} // closed when nobody reads or writes any more, nor ever will
}

// Init prepares c. It is followed by Run, or by Discard.
func (c *Carrier) Init(cfg *Config) {
	c.Settings, c.up, c.out, c.largest = cfg.Settings, cfg.Upper, cfg.Out, cfg.Largest
	c.inbound, c.outbound = cfg.Inbound, cfg.Outbound
	c.ctx, c.cancel = cfg.Context, cfg.End
	c.gone = make(chan struct{})
	c.writers.init(cfg.Resumes)
	c.way.set(cfg.Wire, cfg.TLS, cfg.Place)
	if !cfg.Mute {
		c.live.agree(cfg)
	}
	c.live.part.Begin(cfg.Tally)
	if cfg.Resumes {
		c.acks = new(acks)
		c.out.Keep(c.acks.got.Load, cfg.KeptControls)
	} else if _, ok := cfg.Wire.(wire.VectorWriter); ok {
		c.out.Lend()
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

// RoundTrip returns how long the latest Ping of this side took there and back, 0 before the first.
func (c *Carrier) RoundTrip() time.Duration { return time.Duration(c.live.trip.Load()) }

// Receiving returns what a message holds of which only a part has arrived, in bytes. It is 0 if the
// Wire does not tell.
func (c *Carrier) Receiving() int {
	w, _ := c.way.present()
	return receiving(w)
}

// Stops returns how often reading had to stop at the inbound soft limit, and for how long in all.
func (c *Carrier) Stops() (times uint64, elapsed time.Duration) {
	return c.stops.times.Load(), time.Duration(c.stops.elapsed.Load())
}
