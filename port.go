package asterisque

import (
	"context"
	"errors"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/priority"
)

// port joins one pipe to its session: what leaves, and what is no longer waiting. It is the [pipe.Port] of pipes and part of calls that need none.
type port struct {
	s    *Session
	flow outbox.Flow // guarded by the outbox
	pipe *pipe.Pipe  // nil if the call takes no Blocks here; fixed
	nest *enclosure  // of a call of this side what it lends to calls within it, of one of the peer what it is lent; mostly nil; fixed
}

// id returns the id of the pipe, which it has from the moment in which it is in the session's table.
func (p *port) id() uint64 { return p.flow.ID() }

// Send implements pipe.Port.
func (p *port) Send(ctx context.Context, b pipe.Outgoing) error {
	if a := p.waitForRoom(ctx); a != nil {
		return a
	}
	if a := p.s.reserve(ctx, len(b.Payload)); a != nil {
		return a
	}
	m := p.message(&b, p.s.outbound.State())
	if len(b.Payload) > smallBlock || !p.s.streams() {
		return p.put(&m)
	}
	write, later, err := p.s.out.PutMore(&p.flow, &m)
	switch {
	case write:
		p.s.writeFull()
	case later:
		go p.s.writeLater() // it ends by itself; the session does not wait for it, because it may have ended already
	}
	return p.handed(&m, err)
}

// waitForRoom waits while more of the pipe is in the queue than its share.
func (p *port) waitForRoom(ctx context.Context) *Abort {
	for room := p.s.out.Room(&p.flow); room != nil; room = p.s.out.Room(&p.flow) {
		select {
		case <-room:
		case <-ctx.Done():
			return neverSent(contextError(ctx))
		case <-p.s.ctx.Done():
			return neverSent(p.s.cause())
		}
	}
	return nil
}

// Post implements pipe.Port.
func (p *port) Post(b pipe.Outgoing) (limits.State, error) {
	state := p.s.count(len(b.Payload))
	m := p.message(&b, state)
	write, err := p.hand(&m)
	if write {
		p.s.write() // at once, so that the next Post knows whether the transport takes more
	}
	return state, err
}

// message returns b, to be sent in a state of the session.
func (p *port) message(b *pipe.Outgoing, state limits.State) outbox.Message {
	return outbox.Message{
		Type: codec.BlockType, Payload: b.Payload, Memory: b.Memory, Loss: b.Loss,
		Expires: b.Expires, Pressed: state >= limits.Congested, Marker: b.Marker, Sender: (*pipe.End)(p.pipe),
	}
}

// CloseSend implements pipe.Port.
func (p *port) CloseSend() error {
	p.s.count(0)
	return p.put(&outbox.Message{Type: codec.BlockType, End: true})
}

// Close implements pipe.Port.
func (p *port) Close(result []byte, abort *codec.Abort) {
	if p.close(result, abort) {
		p.s.write()
	}
}

// close is Close; write says that writing is the caller's task now.
func (p *port) close(result []byte, abort *codec.Abort) (write bool) {
	if abort != nil && !p.cancel(outbox.Ended) {
		return false // the peer will never hear of the pipe
	}
	defer p.s.table.remove(p.id()) // last: who waits for the table to be empty, to end the session, waits for the Close as well
	p.s.count(len(result))
	write, err := p.hand(&outbox.Message{Type: codec.CloseType, Payload: result, Abort: abort})
	if errors.Is(err, codec.ErrTooLarge) {
		p.s.count(0)
		write, _ = p.hand(&outbox.Message{Type: codec.CloseType, Abort: codec.ErrTooLarge.Withf("the result: %s", err.(*Abort).Message)})
	}
	return write
}

// cancel drops what waits of the pipe and reports whether the peer may know of it.
func (p *port) cancel(why outbox.Reason) (departed bool) {
	departed, unsent := p.s.out.Cancel(&p.flow, why)
	if unsent {
		p.unsent()
	}
	return departed
}

// unsent gives back what the Open would have used of the peer's window.
func (p *port) unsent() {
	if p.nest == nil {
		p.s.opens.giveBack()
	}
}

// closedBy drops what waits of the pipe because the peer has closed it: nobody would take it.
func (p *port) closedBy(abort *codec.Abort) {
	why := outbox.Ended
	switch {
	case errors.Is(abort, codec.ErrNoFunction):
		why = outbox.NoFunction
	case errors.Is(abort, codec.ErrUnavailable):
		why = outbox.Draining
	}
	p.s.out.Finish(&p.flow, why)
}

// discarded returns the error of a call whose Open was discarded by the outbox.
func (p *port) discarded(why outbox.Reason) *Abort {
	if why == outbox.Expired {
		p.unsent()
		return neverSent(codec.ErrExpired.Withf("its time was up before it could be sent"))
	}
	return neverSent(p.s.cause())
}

// Grant implements pipe.Port.
func (p *port) Grant(total uint64) { p.s.control(codec.Credit{Pipe: p.id(), Limit: total}) }

// Stop implements pipe.Port.
func (p *port) Stop() {
	p.s.count(0)
	p.put(&outbox.Message{Type: codec.ControlType}) // an error means that there is nobody left to tell
}

// Window implements pipe.Port: all that there is as long as less than half of what the soft limit allows is held, and from there on less and less.
func (p *port) Window() int {
	most, soft, held := p.s.cfg.window.Max, p.s.inbound.Limits().Soft.Bytes, p.s.inbound.Held().Bytes
	if soft == 0 || held <= soft/2 {
		return most
	}
	return int(int64(most) * int64(max(soft-held, 0)) / int64(soft-soft/2))
}

// MaxBlock implements pipe.Port.
func (p *port) MaxBlock() int { return p.s.maxBlock }

// Taken implements pipe.Port.
func (p *port) Taken(messages, bytes int) {
	if messages > 0 {
		p.s.inbound.Remove(messages, bytes)
	}
}

// put hands over m, which has been counted. It never waits.
func (p *port) put(m *outbox.Message) error {
	write, err := p.hand(m)
	if write {
		p.s.write()
	}
	return err
}

// hand is put; write says that writing is the caller's task now.
func (p *port) hand(m *outbox.Message) (write bool, err error) {
	write, err = p.s.out.Put(&p.flow, m)
	return write, p.handed(m, err)
}

// handed returns the error of the outbox for m as the pipe should see it.
func (p *port) handed(m *outbox.Message, err error) error {
	if err == nil {
		return nil
	}
	p.s.outbound.Remove(1, len(m.Payload))
	return p.s.sendError(err)
}

// deadline returns when a message that has arrived with a TTL of so many milliseconds is no longer worth taking. Only durations cross the wire, so that clocks need
// not agree.
func deadline(ttl uint32) time.Time {
	if ttl == 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(ttl) * time.Millisecond)
}

// deliver hands b to the pipe that it belongs to.
func (p *port) deliver(to *pipe.Pipe, b codec.Block) error {
	end := (*pipe.End)(to)
	verdict := pipe.Accepted
	if b.End {
		verdict = end.CloseSend(b.Meta.Skipped)
	} else {
		p.s.arrived(len(b.Payload))
		mem := p.s.keep(b.Payload)
		verdict = end.Block(b.Payload, mem, b.Meta.Skipped, deadline(b.Meta.TTL))
		if verdict != pipe.Accepted {
			p.Taken(1, len(b.Payload))
			if mem != nil {
				mem.Release()
			}
		}
	}
	switch verdict {
	case pipe.Violation:
		return violation("Block for pipe %d after the end of its direction", b.Pipe)
	case pipe.Overrun:
		to.Abort(codec.ErrWindow.Withf("pipe %d: the peer sent more than its window allows", b.Pipe))
	}
	return nil
}

// abort sends a Close for a pipe of which nothing else waits. It has a flow of its own: the call that ends with it may be used for another one while the Close waits.
func (s *Session) abort(id uint64, p priority.Priority, a *Abort) {
	s.count(0)
	one := port{s: s, flow: outbox.AcceptedFlow(p, id)}
	one.put(&outbox.Message{Type: codec.CloseType, Abort: a}) // an error means that there is nobody left to tell
}
