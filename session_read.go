package asterisque

import (
	"errors"
	"io"
	"runtime"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/wire"
)

// readTurn is how many frames are read before those who were woken have a turn: what they need is
// still in the processor's cache then, and their answers make smaller batches.
const readTurn = 64

// readTurnBytes does the same for larger frames, which take longer to copy and to deal with. A
// frame counts a third of it at most: what a large one costs here does not grow with its size.
const readTurnBytes = 24 << 10

// readLoop reads the Wire until it ends or the peer breaks the protocol, and returns why. After the
// session has ended on this side it reads on, and discards, so that the peer is not cut off before
// it has read the reason.
func (s *Session) readLoop() (a *Abort) {
	most := s.calls.plan.Largest + outbox.HeadSize
	buffered := func() bool { return false }
	if b, ok := s.wire.(wire.Buffered); ok {
		buffered = b.Buffered
	}
	unsettled := s.res != nil
	inWire := false // it runs a method of the Wire, which may be the application's
	defer func() {
		if inWire {
			a = s.wireBroke(recover())
		}
		s.writeAnswers()
	}()
	for n, bytes := 0, 0; ; n++ {
		inWire = true
		turn := n == readTurn || bytes >= readTurnBytes
		if s.unwritten && (turn || !buffered()) {
			s.writeAnswers()
		}
		if turn {
			n, bytes = 0, 0
			runtime.Gosched()
		}
		frame, err := s.wire.ReadFrame(most)
		inWire = false
		if err != nil {
			return readError(err)
		}
		if unsettled {
			unsettled = false
			s.res.settle()
		}
		bytes += min(len(frame), readTurnBytes/3)
		s.live.frames.Add(1)
		if s.ctx.Err() != nil {
			if bye := farewell(frame); bye != nil {
				return bye // both sides have ended: nobody waits to be told why
			}
			continue
		}
		t, err := message.TypeOf(frame)
		if err == nil && countedByLimits(t) && !s.waitInbound() {
			continue // the Wire is lost, or the session has ended
		}
		s.frame = len(frame)
		size, counts := len(frame), s.res != nil && message.Countable(frame)
		if err == nil {
			err = s.receive(t, frame) // after which the frame may be another's
		}
		if counts && err == nil {
			s.countFrame(size)
		}
		if err != nil {
			var a *Abort
			if !errors.As(err, &a) {
				a = violation("%v", err)
			}
			if a.Code == codec.Protocol {
				s.cfg.log.Warn("peer broke the protocol", "session", s, "addr", guard.RemoteOf(s.cfg.log, s.wire), "error", a)
			}
			s.fail(a)
			if a.Remote {
				return a
			}
		}
	}
}

// farewell returns why the peer has ended the session, if that is what frame says.
func farewell(frame []byte) *Abort {
	if t, err := message.TypeOf(frame); err != nil || t != message.ControlType {
		return nil
	}
	m, err := message.ParseControl(frame)
	c, ok := m.(message.SessionClose)
	if err != nil || !ok {
		return nil
	}
	return endedBy(c)
}

// endedBy returns why the peer has ended the session with c.
func endedBy(c message.SessionClose) *Abort {
	return &Abort{Code: c.Code, Message: c.Message, Remote: true}
}

// countedByLimits reports whether messages of type t are Opens or Blocks. Everything else passes a
// session that stands at its limit: answers do not queue behind questions, and Controls tell that
// the peer lives.
func countedByLimits(t message.Type) bool { return t == message.OpenType || t == message.BlockType }

// keeper is a Wire that can leave the memory of a large frame to whoever uses it, so that this need
// not be copied.
type keeper interface {
	// Keep returns the memory of the frame that was read last, for whoever releases it, or nil.
	Keep() *buffer.Buffer
}

// leastKept is the size, in bytes, from which on it is worth to ask.
const leastKept = 8 << 10

// keep returns the memory of the frame that is being dealt with, of which part is a part, if that
// may be kept, and nil if part has to be copied. It is for the reader.
func (s *Session) keep(part []byte) *buffer.Buffer {
	if s.keeper == nil || len(part) < leastKept || !buffer.Fills(len(part), s.frame) {
		return nil
	}
	return s.keeper.Keep()
}

// readError returns the Abort for a Wire that cannot be read any more.
func readError(err error) *Abort {
	switch {
	case errors.Is(err, wire.ErrFrameTooLarge), errors.Is(err, codec.ErrProtocol):
		return violation("%v", err)
	case errors.Is(err, io.EOF):
		return &Abort{Code: codec.SessionClosed, Message: "the peer closed the wire", Cause: err}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Abort{Code: codec.SessionClosed, Message: "the wire ended in the middle of a frame", Cause: err}
	default:
		return &Abort{Code: codec.SessionClosed, Message: "the wire failed: " + err.Error(), Cause: err}
	}
}

// receive does what one frame, a message of type t, says. An error ends the session.
func (s *Session) receive(t message.Type, frame []byte) error {
	switch t {
	case message.OpenType:
		m, err := message.ParseOpen(frame)
		if err != nil {
			return err
		}
		return s.receiveOpen(&m)
	case message.BlockType:
		m, err := message.ParseBlock(frame)
		if err != nil {
			return err
		}
		return s.receiveBlock(m)
	case message.CloseType:
		m, err := message.ParseClose(frame)
		if err != nil {
			return err
		}
		return s.receiveClose(m)
	default:
		m, err := message.ParseControl(frame)
		if err != nil {
			return err
		}
		return s.receiveControl(m)
	}
}

func (s *Session) receiveOpen(m *message.Open) error {
	var within *outer
	if m.Meta.Nested {
		within = s.table.outer(m.Meta.Within)
	}
	h := s.svc.find(m.Function)
	var refused *Abort
	switch {
	case h == nil:
		refused = codec.ErrNoFunction.Withf("function %d", m.Function)
	case m.Meta.Nested && within == nil:
		refused = codec.ErrCanceled.Withf("the call that it is made within is over")
	case within != nil && within.depth >= deepest:
		refused = codec.ErrOverloaded.Withf("the call is the %dth within each other, and %d is the deepest", within.depth+1, deepest)
	default:
		if !m.Meta.Nested {
			if refused = s.shared.budget.refusesCall(s.owner); refused != nil {
				break
			}
		}
		c := newIncoming(s, m, h, within)
		ok, err := s.table.accept(c.id(), c)
		if ok {
			s.accept(c)
		}
		if ok || err != nil {
			return err
		}
		c.freeParams()
		refused = errShutDown // Shutdown was called meanwhile, or the session has ended
		s.announceEnd()
	}
	if err := s.table.check(m.Pipe); err != nil {
		return err
	}
	cost := m.Cost(s.terms.Overhead, s.terms.Early)
	if beyond := s.calls.arrive(cost, m.Meta.Nested); beyond != nil {
		refused, cost = beyond, 0
	}
	s.turnAway(m, refused, cost)
	return nil
}

var errOpensWindow = codec.ErrWindow.Withf("more calls than there is room for")

// accept lets c run: here if it is inline, and else as soon as it is its turn. It is in the table
// already, so that the end of the session may end it meanwhile.
func (s *Session) accept(c *incoming) {
	if err := c.weigh(); err != nil {
		s.turnBack(c, codec.AbortOf(err))
		return
	}
	if c.rare != nil && c.rare.key != nil {
		if refused := s.calls.arrive(c.cost(), c.nested()); refused != nil {
			c.refuse(refused)
			return
		}
		c.rare.counted = true
		if !s.shared.once.begin(c) {
			return
		}
	}
	if c.handler.inline {
		s.runInline(c)
	} else if err := s.enqueue(c, (*Session).turnBack); err != nil {
		s.turnBack(c, codec.AbortOf(err))
	}
}

// turnBack refuses c, which has only just arrived. Its caller gets its room back when the refusal
// has left.
func (s *Session) turnBack(c *incoming, a *Abort) {
	c.freeParams()
	if !c.counted() {
		if beyond := s.calls.arrive(c.cost(), c.nested()); beyond != nil {
			c.refuse(beyond)
			return
		}
	}
	c.onReader = true
	c.refuse(a)
}

// enqueue lets c run as soon as it is its turn. An error is why it cannot; refuse is as for
// examine.
func (s *Session) enqueue(c *incoming, refuse refusing) error {
	if k := c.handler.keys; k != nil {
		if err := c.examine("key", refuse, func() error { return k.name(c) }); err != nil {
			return err
		}
	}
	s.arrived(c.held())
	s.calls.put(c)
	return nil
}

// writeAfterReading lets what is in the outbox, whose writer the caller has become, be written when
// the reader has dealt with all that has arrived. It is for the reader.
func (s *Session) writeAfterReading() { s.unwritten = true }

// writeAnswers writes what the reader has answered: inline functions and Pings.
func (s *Session) writeAnswers() {
	if s.unwritten {
		s.unwritten = false
		s.write()
	}
}

func (s *Session) receiveBlock(m message.Block) error {
	e, err := s.table.find(m.Pipe)
	if e == nil {
		return err // nil if the pipe is over: Blocks may cross its Close
	}
	return e.block(m)
}

func (s *Session) receiveClose(m message.Close) error {
	e, err := s.table.take(m.Pipe)
	if e == nil {
		return err
	}
	e.closed(m)
	return nil
}

func (s *Session) receiveControl(m message.Control) error {
	switch c := m.(type) {
	case message.Credit:
		return s.receiveCredit(c)
	case message.Stop:
		return s.toPipe(c.Pipe, func(p *piping.End) error { p.StopArrived(); return nil })
	case message.Ask:
		return s.toPipe(c.Pipe, func(p *piping.End) error {
			if !p.AskArrived(c.Sent, c.Total) {
				return violation("Ask for pipe %d after %d bytes, which is not what has arrived", c.Pipe, c.Sent)
			}
			return nil
		})
	case message.Allow:
		return s.toPipe(c.Pipe, func(p *piping.End) error { p.AllowArrived(c.Total); return nil })
	case message.Ping:
		s.pongs.answer(s, c.N)
	case message.Pong:
		s.live.pong(c.N, s.shared.now())
	case message.Ack:
		if !s.out.Ack(c.Count) {
			return violation("Ack of %d frames, which is more than were sent", c.Count)
		}
	case message.Drain:
		s.table.drainThere(c)
		if s.outgoing.drain() {
			s.holder.sessionChanged()
		}
	case message.SessionClose:
		return endedBy(c)
	case message.Sync:
		return violation("a second Sync")
	}
	return nil // an unknown Control is to be ignored
}

func (s *Session) receiveCredit(c message.Credit) error {
	if c.Opens {
		s.opens.grant(c.Limit)
		return nil
	}
	return s.toPipe(c.Pipe, func(p *piping.End) error { p.CreditArrived(c.Limit); return nil })
}

// toPipe hands the pipe of a Control to f, if that carries Blocks and is not over.
func (s *Session) toPipe(id uint64, f func(*piping.End) error) error {
	e, err := s.table.find(id)
	if e == nil {
		return err
	}
	if p := e.untyped(); p != nil {
		return f((*piping.End)(p))
	}
	return nil
}
