package carrier

import (
	"errors"
	"io"
	"runtime"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// readTurn is how many frames are read before those who were woken have a turn: what they need is
// still in the processor's cache then, and their answers make smaller batches.
const readTurn = 64

// readTurnBytes does the same for larger frames, which take longer to copy and to deal with. A
// frame counts a third of it at most: what a large one costs here does not grow with its size.
const readTurnBytes = 24 << 10

// reader is what only the reader knows.
type reader struct {
	frame int // bytes of the frame that is being dealt with
	// the reader is the writer, and writes when it has dealt with all that has arrived
	unwritten bool
	// called before the first frame of the present Wire is dealt with, and then nil
	first func()
}

// run calls f, and then lets go of all if the session is over. If f panics, or ends the goroutine,
// another one goes on.
func (c *Carrier) run(f func() (over bool)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			guard.Misbehaved(c.Log, "what reads a session", v, "session", c.up)
			c.closeWire() // so that nothing is read any more
		}
		go c.run(c.readOn) // ends as this one would have
	}()
	over := f()
	returned = true
	if over {
		c.finish()
	}
}

// read reads the Wire until that is lost, and reports whether the session is over.
func (c *Carrier) read() (over bool) {
	a := c.readLoop()
	if c.goesOnAfter(a) {
		return !c.leave(a) // whoever claims it goes on
	}
	c.End(a)
	if a.Code != codec.Protocol {
		c.closeWire() // nobody is there to be told why
	}
	return true
}

// readOn is called when the goroutine of the reader was ended: the session ends with it. As always,
// what still comes is read until the peer has had the time to learn why.
func (c *Carrier) readOn() (over bool) {
	c.End(codec.ErrPanicked.Withf("code of the application has ended the goroutine that reads"))
	if !c.way.shuts() {
		c.readLoop()
	}
	return true
}

// readLoop reads the Wire until it ends or the peer breaks the protocol, and returns why. After the
// session has ended on this side it reads on, and discards, so that the peer is not cut off before
// it has read the reason.
func (c *Carrier) readLoop() (a *codec.Abort) {
	w := c.way.wire
	buffered := func() bool { return false }
	if b, ok := w.(wire.Buffered); ok {
		buffered = b.Buffered
	}
	inWire := false // it runs a method of the Wire, which may be the application's
	defer func() {
		if inWire {
			a = c.readerBroke(recover())
		}
		c.writeAnswers()
	}()
	for n, bytes := 0, 0; ; n++ {
		inWire = true
		turn := n == readTurn || bytes >= readTurnBytes
		if c.reader.unwritten && (turn || !buffered()) {
			c.writeAnswers()
		}
		if turn {
			n, bytes = 0, 0
			runtime.Gosched()
		}
		frame, err := w.ReadFrame(c.largest)
		inWire = false
		if err != nil {
			return readError(err)
		}
		bytes += min(len(frame), readTurnBytes/3)
		if over := c.dealWith(frame); over != nil {
			return over
		}
	}
}

// dealWith does what a frame says. It returns why nothing more is to be read, or nil.
func (c *Carrier) dealWith(frame []byte) (over *codec.Abort) {
	if first := c.reader.first; first != nil {
		c.reader.first = nil
		first()
	}
	c.live.frames.Add(1)
	if c.ctx.Err() != nil {
		return farewell(frame) // if both sides have ended, nobody waits to be told why
	}
	t, err := message.TypeOf(frame)
	if err == nil && countedByLimits(t) && !c.waitInbound() {
		return nil // the Wire is lost, or the session has ended
	}
	c.reader.frame = len(frame)
	size, counts := len(frame), c.acks != nil && message.Countable(frame)
	if err == nil {
		err = c.up.Receive(t, frame) // after which the frame may be another's
	}
	if err != nil {
		return c.refuses(err)
	}
	if counts {
		c.countFrame(size)
	}
	return nil
}

// refuses ends the session because of what a frame has said, and returns it if the peer has ended
// the session by it: then nothing more is to be read.
func (c *Carrier) refuses(err error) *codec.Abort {
	var a *codec.Abort
	if !errors.As(err, &a) {
		a = violation("%v", err)
	}
	if a.Code == codec.Protocol {
		c.Log.Warn("peer broke the protocol", "session", c.up, "addr", guard.RemoteOf(c.Log, c.way.wire), "error", a)
	}
	c.End(a)
	if a.Remote {
		return a
	}
	return nil
}

// writeAnswers writes what was put to go after reading.
func (c *Carrier) writeAnswers() {
	if c.reader.unwritten {
		c.reader.unwritten = false
		c.write()
	}
}

// farewell returns why the peer has ended the session, if that is what frame says.
func farewell(frame []byte) *codec.Abort {
	if t, err := message.TypeOf(frame); err != nil || t != message.ControlType {
		return nil
	}
	m, err := message.ParseControl(frame)
	bye, ok := m.(message.SessionClose)
	if err != nil || !ok {
		return nil
	}
	return EndedBy(bye)
}

// EndedBy returns why the peer has ended the session with bye.
func EndedBy(bye message.SessionClose) *codec.Abort {
	return &codec.Abort{Code: bye.Code, Message: bye.Message, Remote: true}
}

// countedByLimits reports whether messages of type t are Opens or Blocks. Everything else passes a
// session whose reader waits: answers do not queue behind questions, and Controls tell that the
// peer lives.
func countedByLimits(t message.Type) bool { return t == message.OpenType || t == message.BlockType }

// LeastKept is the size, in bytes, from which on it is worth to call Keep.
const LeastKept = 8 << 10

// Keep returns the memory of the frame that is being dealt with, of which part is a part, if that
// may be kept, and nil if part has to be copied. It is for the reader.
func (c *Carrier) Keep(part []byte) *buffer.Buffer {
	if c.way.keeper == nil || len(part) < LeastKept || !buffer.Fills(len(part), c.reader.frame) {
		return nil
	}
	return c.way.keeper.Keep()
}

// readError returns the Abort for a Wire that cannot be read any more.
func readError(err error) *codec.Abort {
	switch {
	case errors.Is(err, wire.ErrFrameTooLarge), errors.Is(err, codec.ErrProtocol):
		return violation("%v", err)
	case errors.Is(err, io.EOF):
		return &codec.Abort{Code: codec.SessionClosed, Message: "the peer closed the wire", Cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &codec.Abort{Code: codec.SessionClosed, Message: "the wire ended in the middle of a frame", Cause: err}
	default:
		return wireFailed(err)
	}
}

// readerBroke returns why the Wire cannot be read any more: it has not returned. v is as for
// [guard.Misbehaved].
func (c *Carrier) readerBroke(v any) *codec.Abort {
	guard.Misbehaved(c.Log, "wire", v, "session", c.up)
	a := &codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: it " + guard.HowEnded(v)}
	if v == nil {
		c.End(a)
		c.closeWire()
	}
	return a
}
