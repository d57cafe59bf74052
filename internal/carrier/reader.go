package carrier

import (
	"errors"
	"runtime"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// readTurn is the number of frames that are read before the goroutines woken by them get a turn.
// Their data is still in the processor's cache then, and their replies make smaller batches.
const readTurn = 64

// readTurnBytes is the same for larger frames, which take longer to copy and to process. A frame
// counts as at most a third of it: the cost of a large frame here does not grow with its size.
const readTurnBytes = 48 << 10

// reader reads the Wire and passes frames to the Receiver. The owner of the Carrier calls loop.
type reader struct {
	*readHold             // fixed, as are acks and most
	acks      *ackCounter // nil unless the session can resume
	most      uint32      // bytes of the largest message that the peer may send

	frame uint32 // bytes of the current frame
	// called before the first frame of the present Wire is processed, and then nil
	first func()

	stack stackShrinker
	bytes uint32 // total of all frames, the low bits
}

// loop reads the Wire until it ends or the peer breaks the protocol, and returns the reason. After
// the session has ended on this side, loop continues and discards frames, so that the peer is not
// cut off before it has read the reason.
//
// It returns nil when another goroutine is to continue: see rest.
//
// A stack of 2 KiB has to hold loop and all below it while it waits for a frame, so that its frame
// is small.
func (r *reader) loop() (a *codec.Abort) {
	inWire := false // set during methods of the Wire, which may be application code
	defer func() {
		if inWire {
			a = r.readerBroke(recover())
		}
		r.writer.writeAnswers()
	}()
	w, largest := r.transport.wire, r.largestFrame()
	for n, bytes := 0, 0; ; n++ {
		inWire = true
		if r.pace(w, n, bytes) {
			n, bytes = 0, 0
		}
		frame, err := w.ReadFrame(largest)
		if err != nil {
			rests := r.stack.woken(w, err)
			inWire = false
			if rests {
				return nil
			}
			return readError(err)
		}
		inWire = false
		bytes += min(len(frame), readTurnBytes/3)
		if over := r.dealWith(frame); over != nil {
			return over
		}
	}
}

// largestFrame returns the bytes of the largest frame of the Wire.
func (r *reader) largestFrame() int {
	if isForeign(r.transport.wire) {
		return int(r.most)
	}
	return min(int(r.most), message.MaxFrame)
}

// pace writes answers that no further frame may follow at once, and lets other goroutines run after
// a turn of n frames with so many bytes. It reports whether the turn is over.
//
//go:noinline
func (r *reader) pace(w wire.Wire, n, bytes int) (turn bool) {
	turn = n == readTurn || bytes >= readTurnBytes
	if r.writer.unwritten {
		b, ok := w.(wire.Buffered)
		if turn || !ok || !b.Buffered() {
			r.writer.writeAnswers()
		}
	}
	if turn {
		runtime.Gosched()
	}
	return turn
}

// isForeign reports whether w carries every message whole, regardless of its size, because the peer
// speaks another protocol.
func isForeign(w wire.Wire) bool {
	_, ok := w.(wire.Foreign)
	return ok
}

// dealWith processes a frame. It returns the reason to stop reading, or nil.
func (r *reader) dealWith(frame []byte) (over *codec.Abort) {
	if first := r.first; first != nil {
		r.first = nil
		first()
	}
	r.meter.frames.Add(1)
	r.bytes += uint32(len(frame))
	if r.ctx.Err() != nil {
		return farewell(frame) // after the peer has ended the session, too, it needs no reason
	}
	t, err := message.TypeOf(frame)
	if err == nil && countedByLimits(t) && !r.waitInbound() {
		return nil // the Wire is lost, or the session has ended
	}
	r.frame = uint32(len(frame))
	size, counts := len(frame), r.acks != nil && message.Countable(frame)
	dealt := true
	switch {
	case err != nil:
	case t == message.PartType:
		dealt, err = r.part(frame)
	default:
		err = r.receiver.Receive(t, frame, 0) // the frame may have a new owner afterwards
	}
	if !dealt {
		return nil
	}
	if err != nil {
		return r.refuses(err)
	}
	if counts {
		r.acks.count(size)
	}
	return nil
}

// refuses ends the session because of a frame. It returns the error if the peer has ended the
// session by that frame, so that reading stops.
func (r *reader) refuses(err error) *codec.Abort {
	var a *codec.Abort
	if !errors.As(err, &a) {
		a = violation("%v", err)
	}
	if a.Code == codec.Protocol {
		r.Log.Warn("peer broke the protocol", "session", r.session, "addr", guard.RemoteOf(r.Log, r.transport.wire), "error", a)
	}
	r.host.End(a)
	if a.Remote {
		return a
	}
	return nil
}

// farewell returns the reason for which the peer has ended the session, if frame carries one.
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

// EndedBy returns the error for a session that the peer has ended with bye.
func EndedBy(bye message.SessionClose) *codec.Abort {
	return &codec.Abort{Code: bye.Code, Message: bye.Message, Remote: true}
}

// leastKept is the size, in bytes, from which on Keep is cheaper than a copy.
const leastKept = 8 << 10

// keep returns the memory of the current frame, which contains part, if that memory may be kept. It
// returns nil if part has to be copied. A Wire that does not return from its Keep is closed.
func (r *reader) keep(part []byte) (mem *buffer.Buffer) {
	if len(part) < leastKept {
		return nil
	}
	if p := r.parts.Load(); p != nil && p.whole != nil {
		return p.keep(part)
	}
	if !buffer.Fills(len(part), int(r.frame)) {
		return nil
	}
	ahead, ok := r.transport.wire.(wire.Buffered)
	if !ok {
		return nil
	}
	returned := false
	defer func() {
		if !returned {
			r.readerBroke(recover())
			r.closeWire()
		}
	}()
	mem = (*buffer.Buffer)(ahead.Keep())
	returned = true
	return mem
}

// readerBroke returns the error for a Wire that has not returned from a read. v is as for
// [guard.Misbehaved].
func (r *reader) readerBroke(v any) *codec.Abort {
	guard.Misbehaved(r.Log, "wire", v, "session", r.session)
	a := &codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: it " + guard.HowEnded(v)}
	if v == nil {
		r.host.End(a)
		r.closeWire()
	}
	return a
}
