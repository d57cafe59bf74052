package carrier

import (
	"errors"
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// What the session puts into the outbox, and when it is to be written. None of it waits for the
// Wire.

// When says when a message goes.
type When uint8

const (
	// Now writes at once what the Wire takes without waiting. A goroutine writes the rest.
	Now When = iota

	// WithNext lets a small Block wait for the next ones, if such a stream is likely: nothing has
	// come from the peer since the last of them.
	WithNext

	// AfterReading lets the reader write it together with all else that answers what has arrived.
	// It is for the reader.
	AfterReading
)

// smallBlock is the size, in bytes, up to which a Block is better written together with others.
const smallBlock = 8 << 10

// Put sends m on the pipe of f; see [outbox.Outbox.Put] for errors and what is kept.
func (c *Carrier) Put(f *outbox.Flow, m *outbox.Message, when When) error {
	if when == WithNext && len(m.Payload) <= smallBlock && c.streams() {
		return c.putMore(f, m)
	}
	write, err := c.out.Put(f, m)
	if write {
		c.writeWhen(when)
	}
	return err
}

// putMore is Put for one of many small Blocks.
func (c *Carrier) putMore(f *outbox.Flow, m *outbox.Message) error {
	write, later, err := c.out.PutMore(f, m)
	switch {
	case write:
		c.writeFull()
	case later:
		// it ends by itself; nobody waits for it, because the session may have ended already
		go c.writeLater()
	}
	return err
}

// streams reports whether nothing has come from the peer since it was asked last, for a small
// Block: then more of them are likely to follow at once.
func (c *Carrier) streams() bool {
	heard := c.live.frames.Load() + 1
	if c.writers.streaming.Load() == heard {
		return true
	}
	c.writers.streaming.Store(heard)
	return false
}

// Enter sends the Open of a call whose caller waits; see [outbox.Outbox.Enter].
func (c *Carrier) Enter(f *outbox.Flow, m *outbox.Message) error {
	write, err := c.out.Enter(f, m)
	if write {
		c.write()
	}
	return err
}

// Control sends a Control. A peer that does not acknowledge what it reads ends the session by it.
func (c *Carrier) Control(m message.Control, when When) {
	write, err := c.out.PutControl(m)
	c.controlled(write, err, when)
}

// Announce lets a be asked for its Controls when they can depart; see [outbox.Outbox.Announce].
func (c *Carrier) Announce(a outbox.Announcer) {
	write, err := c.out.Announce(a)
	c.controlled(write, err, Now)
}

// controlled sees to what follows from putting a Control.
func (c *Carrier) controlled(write bool, err error, when When) {
	if write {
		c.writeWhen(when)
	}
	if err != nil && !errors.Is(err, outbox.ErrClosed) {
		c.End(violation("%v", err))
	}
}

// ack tells the peer what has arrived, if that is at least least frames more than it knows.
func (c *Carrier) ack(least uint64) {
	if c.out.PutAck(least) {
		c.write()
	}
}

// Room returns a channel that is closed when the pipe of f has room; see [outbox.Outbox.Room].
func (c *Carrier) Room(f *outbox.Flow) (room <-chan struct{}, alone bool) { return c.out.Room(f) }

// Judge judges a Block that cannot be put now; see [outbox.Outbox.Judge].
func (c *Carrier) Judge(f *outbox.Flow, m *outbox.Message) (dropped bool) { return c.out.Judge(f, m) }

// Thin judges the Blocks that wait; see [outbox.Outbox.Thin].
func (c *Carrier) Thin() { c.out.Thin() }

// Cancel drops what waits of f; see [outbox.Outbox.Cancel].
func (c *Carrier) Cancel(f *outbox.Flow, why outbox.Reason) (departed, unsent bool) {
	return c.out.Cancel(f, why)
}

// Finish drops what waits of f, whose pipe the peer has closed; see [outbox.Outbox.Finish].
func (c *Carrier) Finish(f *outbox.Flow, why outbox.Reason) { c.out.Finish(f, why) }

// Flush returns a channel that is closed when all is written; see [outbox.Outbox.Flush].
func (c *Carrier) Flush() <-chan struct{} { return c.out.Flush() }

// MaxSize returns how much the peer takes in one message; see [outbox.Outbox.MaxSize].
func (c *Carrier) MaxSize() int { return c.out.MaxSize() }

// violation returns the error of a peer that broke the protocol.
func violation(format string, args ...any) *codec.Abort {
	return &codec.Abort{Code: codec.Protocol, Message: fmt.Sprintf(format, args...)}
}
