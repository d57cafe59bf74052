package carrier

import (
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// Methods by which the session puts messages into the outbox. None of them blocks for the Wire.

// Put sends m on the pipe of f. See [outbox.Outbox.Put] for errors and retained memory.
func (c *Carrier) Put(f *outbox.Flow, m *outbox.Message, when When) error {
	if when == WithNext && len(m.Payload) <= smallBlock && c.writer.streams() {
		return c.writer.putMore(f, m)
	}
	write, err := c.out.Put(f, m)
	if write {
		c.writer.writeWhen(when)
	}
	return err
}

// PutLast is Put for the last message of a pipe. It calls forget after the message is in the
// outbox, so that a Flush includes it, and before the message is written: a peer that has read the
// message finds the pipe gone. After an error forget is not called.
func (c *Carrier) PutLast(f *outbox.Flow, m *outbox.Message, when When, forget func()) error {
	write, err := c.out.Put(f, m)
	if err == nil {
		forget()
	}
	if write {
		c.writer.writeWhen(when)
	}
	return err
}

// Enter sends the Open of a call with a waiting caller; see [outbox.Outbox.Enter].
func (c *Carrier) Enter(f *outbox.Flow, m *outbox.Message) error {
	write, err := c.out.Enter(f, m)
	if write {
		c.writer.write()
	}
	return err
}

// Control sends a Control. If the peer does not acknowledge frames and too many Controls are kept,
// the session ends.
func (c *Carrier) Control(m message.Control, when When) {
	c.writer.control(m, when)
}

// Announce asks a for its Controls as soon as they can be sent; see [outbox.Outbox.Announce].
func (c *Carrier) Announce(a outbox.Announcer) {
	write, err := c.out.Announce(a)
	c.writer.controlled(write, err, Now)
}

// Room returns a channel that is closed when the pipe of f has room; see [outbox.Outbox.Room].
func (c *Carrier) Room(f *outbox.Flow) <-chan struct{} { return c.out.Room(f) }

// Judge judges a Block that cannot be put now; see [outbox.Outbox.Judge].
func (c *Carrier) Judge(f *outbox.Flow, m *outbox.Message) (dropped bool) { return c.out.Judge(f, m) }

// Expire drops a Block that was not put; see [outbox.Outbox.Expire].
func (c *Carrier) Expire(f *outbox.Flow, m *outbox.Message) { c.out.Expire(f, m) }

// Thin judges the Blocks that wait; see [outbox.Outbox.Thin].
func (c *Carrier) Thin() { c.out.Thin() }

// Cancel drops the queued messages of f; see [outbox.Outbox.Cancel].
func (c *Carrier) Cancel(f *outbox.Flow, why outbox.Reason) (departed, unsent bool) {
	return c.out.Cancel(f, why)
}

// Finish drops the queued messages of f, whose call is over; see [outbox.Outbox.Finish].
func (c *Carrier) Finish(f *outbox.Flow, why outbox.Reason) (unsent bool) {
	return c.out.Finish(f, why)
}

// Unfinished reports whether the Open of f is partly sent; see [outbox.Outbox.Unfinished].
func (c *Carrier) Unfinished(f *outbox.Flow) bool { return c.out.Unfinished(f) }

// FinishPipe drops the unsent parts of a pipe that the peer has closed; see
// [outbox.Outbox.FinishPipe].
func (c *Carrier) FinishPipe(id uint64, why outbox.Reason) { c.out.FinishPipe(id, why) }

// EndOpens rejects further Opens; see [outbox.Outbox.EndOpens].
func (c *Carrier) EndOpens() { c.out.EndOpens() }

// Flush returns a channel that is closed when all messages are written; see [outbox.Outbox.Flush].
func (c *Carrier) Flush() <-chan struct{} { return c.out.Flush() }

// CheckSize returns an error if m exceeds the limit of the peer, and nil otherwise.
func (c *Carrier) CheckSize(m *outbox.Message) *outbox.TooLargeError { return c.out.CheckSize(m) }

// MaxSize returns the size of the largest message that the peer accepts; see
// [outbox.Outbox.MaxSize].
func (c *Carrier) MaxSize() int { return c.out.MaxSize() }

// Ack processes an acknowledgement of the peer. It returns false if count exceeds the number of
// sent frames.
func (c *Carrier) Ack(count uint64) (ok bool) { return c.out.Ack(count) }

// Ping answers a Ping of the peer. It is for the reader.
func (c *Carrier) Ping(n uint64) { c.pongs.answer(&c.carrierBase, n, c.reader.bytes) }

// Pong processes the answer to a Ping of this side. It is for the reader.
func (c *Carrier) Pong(n uint64) {
	sent, ok := c.live.pong(n)
	r := c.route.Load()
	if r == nil {
		return
	}
	if ok {
		n = r.before(sent)
	}
	if r.returns(n) {
		c.writer.writeWhen(AfterReading)
	}
}

// Keep returns the memory of the current frame, which contains part, if that memory may be kept. It
// returns nil if part has to be copied. It is for the reader.
func (c *Carrier) Keep(part []byte) *buffer.Buffer { return c.reader.keep(part) }
