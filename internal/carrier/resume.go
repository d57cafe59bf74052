package carrier

import (
	"context"
	"crypto/tls"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// A session that both sides agreed to resume outlives its Wire: the outbox keeps what the peer has
// not acknowledged, acks counts what has arrived, and when the Wire is lost the Carrier waits,
// away, for another one. What both sides lack is then sent again.

// Comeback is another Wire for a Carrier that is away.
type Comeback struct {
	Wire  wire.Wire
	TLS   *tls.ConnectionState // of the Wire; nil without
	Place transport.Place      // what the Wire has at the door; nil without
	// how many countable frames the peer has
	Received uint64

	// Check returns why the Carrier does not go on over this Wire, although it was to when the
	// handshake arrived; nil: nothing can change that.
	Check func() error
	// Confirm tells the peer that the session goes on, and how many countable frames this side has;
	// nil: the peer knows. After an error all is as it was. missing is how many bytes are going to
	// be sent again.
	Confirm func(received uint64, missing int) error
	// Renew is called when the Carrier has the Wire, and nobody reads or writes.
	Renew func()
	// Settled is called by the reader when something has come over the Wire.
	Settled func()
}

// goesOnAfter reports whether the session goes on after a has ended its Wire.
func (c *Carrier) goesOnAfter(a *codec.Abort) bool {
	return c.reader.acks != nil && c.ctx.Err() == nil && a.Code == codec.SessionClosed && !a.Remote
}

// leave is called by the reader when the Wire is lost because of a. It waits until nobody writes
// any more, and then lets the Carrier wait for another Wire, without an owner. It reports false if
// the session has ended.
func (c *Carrier) leave(a *codec.Abort) bool {
	c.closeWire()
	if _, ok := c.way.to(lost); !ok {
		return false
	}
	if !c.out.Halt() {
		select {
		case <-c.writer.halted:
		case <-c.writer.told.fired(): // the session has ended meanwhile
		}
	}
	c.writer.none = true
	c.outbound.SetCongested(true)
	if _, ok := c.way.to(halted); !ok {
		return false
	}
	c.up.Away(a)
	return c.park()
}

// park lets the Carrier wait for another Wire, without its owner. It reports false if the session
// has ended.
func (c *Carrier) park() bool {
	return c.way.park(c.ResumeFor, func() {
		c.End(codec.ErrUnavailable.Withf("the peer did not come back within %v", c.ResumeFor))
	})
}

// Resume lets the session go on over another Wire. It closes the old one, and waits until the
// Carrier is away, or ctx ends. After an error the Carrier is as it was, and the Wire is the
// caller's.
func (c *Carrier) Resume(ctx context.Context, b *Comeback) (err error) {
	if err := c.claim(ctx, b); err != nil {
		return err
	}
	err = errNotConfirmed
	defer func() { // also if the Wire panics, or ends the goroutine
		switch {
		case err == nil:
			go c.run(c.readAgain) // ends with the Wire
		case !c.park():
			go c.finish() // ends by itself
		}
	}()
	err = c.takeOver(b)
	return err
}

// claim makes the caller the owner of the Carrier, as soon as that is away.
func (c *Carrier) claim(ctx context.Context, b *Comeback) error {
	for {
		if err := b.check(); err != nil {
			return err
		}
		ok, parks := c.way.claim()
		if ok {
			return nil
		}
		c.closeWire() // an old Wire that comes back to life can do no harm
		select {
		case <-parks:
		case <-ctx.Done():
			return ctx.Err()
		case <-c.ctx.Done():
			return context.Cause(c.ctx)
		}
	}
}

func (b *Comeback) check() error {
	if b.Check == nil {
		return nil
	}
	return b.Check()
}

var errNotConfirmed = codec.ErrUnavailable.Withf("the wire has not returned from writing")

// takeOver goes on over another Wire. The caller owns the Carrier, and is the writer.
func (c *Carrier) takeOver(b *Comeback) error {
	if err := b.check(); err != nil {
		return err
	}
	missing, err := c.out.Resume(b.Received)
	if err != nil {
		return err
	}
	if err := c.confirm(b, missing); err != nil {
		return err
	}
	c.way.set(b.Wire, b.TLS, b.Place)
	c.live.restart()
	c.route.Store(nil) // its marks are lost
	c.reader.first = b.Settled
	c.writer.none = false
	c.way.to(attached)
	if b.Renew != nil {
		b.Renew()
	}
	if b.Confirm == nil {
		// by which the peer knows that this side has the next secret
		c.writer.control(message.Ack{Count: c.Received()}, Now)
	}
	c.writer.all.Go(func() { c.resend(missing) })
	return nil
}

// confirm tells the peer that the session goes on. If it cannot, all is as it was, also if the Wire
// panics.
func (c *Carrier) confirm(b *Comeback, missing [][]byte) (err error) {
	if b.Confirm == nil {
		return nil
	}
	err = errNotConfirmed
	defer func() {
		if err != nil {
			c.out.Resent()
			c.out.Halt() // which is not claimed: the caller is still the writer
		}
	}()
	size := 0
	for _, frames := range missing {
		size += len(frames)
	}
	err = b.Confirm(c.Received(), size)
	return err
}

// readAgain is read for a session that goes on over another Wire.
func (c *Carrier) readAgain() (over bool) {
	c.up.Back()
	return c.read()
}

// resend writes what the peer lacks, and then what has come meanwhile.
func (c *Carrier) resend(missing [][]byte) {
	for _, frames := range missing {
		if len(frames) == 0 {
			continue
		}
		if err := c.writer.writeBatch(frames); err != nil {
			c.out.Resent()
			c.writer.writeFailed(err)
			return
		}
	}
	c.out.Resent()
	c.way.to(resent)
	c.writer.writeLoop()
}
