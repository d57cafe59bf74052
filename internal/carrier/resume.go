package carrier

import (
	"context"
	"crypto/tls"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// A session that both sides agreed to resume survives the loss of its Wire. The outbox keeps the
// frames that the peer has not acknowledged, and acks counts the received frames. After the loss,
// the Carrier waits in state Away for another Wire. Then each side sends the frames that the other
// one lacks.

// Comeback is another Wire for a Carrier in state Away.
type Comeback struct {
	Wire  wire.Wire
	TLS   *tls.ConnectionState // of the Wire; nil without TLS
	Place transport.Place      // admission place of the Wire; nil without
	// number of countable frames that the peer has received
	Received uint64

	// Check returns an error if the Carrier must not resume over this Wire any more, although it
	// was to when the handshake arrived; nil: always allowed.
	Check func() error
	// Confirm sends the peer the confirmation, and the number of countable frames that this side
	// has received; nil: the peer knows. After an error the Carrier is unchanged. missing is the
	// number of bytes that will be sent again.
	Confirm func(received uint64, missing int) error
	// Renew is called when the Carrier has the Wire and neither reads nor writes yet.
	Renew func()
	// Settled is called by the reader when the first frame has arrived over the Wire.
	Settled func()
}

// relieve drops messages that no application will take.
func (c *Carrier) relieve() bool { return c.session.Relieve() }

// goesOnAfter reports whether the session survives the loss of its Wire with error a.
func (c *Carrier) goesOnAfter(a *codec.Abort) bool {
	return c.reader.acks != nil && c.ctx.Err() == nil && a.Code == codec.SessionClosed && !a.Remote
}

// leave is called by the reader when the Wire is lost with error a. It waits until the writer has
// ended, and then parks the Carrier without an owner. It returns false if the session has ended.
func (c *Carrier) leave(a *codec.Abort) bool {
	c.closeWire()
	if _, ok := c.transport.to(lost); !ok {
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
	if _, ok := c.transport.to(halted); !ok {
		return false
	}
	c.session.Away(a)
	return c.park()
}

// park puts the Carrier into state Away, without an owner. It returns false if the session has
// ended.
func (c *Carrier) park() bool {
	return c.transport.park(c.ResumeFor, func() {
		c.End(codec.ErrUnavailable.Withf("the peer did not come back within %v", c.ResumeFor))
	})
}

// Resume resumes the session over another Wire. It closes the old one, and waits until the Carrier
// is in state Away or ctx ends. After an error the Carrier is unchanged, and the caller keeps the
// ownership of the Wire.
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

// claim makes the caller the owner of the Carrier as soon as the Carrier is in state Away.
func (c *Carrier) claim(ctx context.Context, b *Comeback) error {
	for {
		if err := b.check(); err != nil {
			return err
		}
		ok, parks := c.transport.claim()
		if ok {
			return nil
		}
		c.closeWire() // so an old Wire that recovers cannot interfere
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

// takeOver resumes over another Wire. The caller owns the Carrier and is the writer.
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
	c.transport.set(b.Wire, b.TLS, b.Place)
	c.live.restart()
	c.route.Store(nil) // its marks are lost
	c.reader.first = b.Settled
	c.writer.none = false
	c.transport.to(attached)
	if b.Renew != nil {
		b.Renew()
	}
	if b.Confirm == nil {
		// proves to the peer that this side has the next secret
		c.writer.control(message.Ack{Count: c.Received()}, Now)
	}
	c.writer.all.Go(func() { c.resend(missing) })
	return nil
}

// confirm sends the confirmation to the peer. After an error, or a panic of the Wire, the Carrier
// is unchanged.
func (c *Carrier) confirm(b *Comeback, missing [][]byte) (err error) {
	if b.Confirm == nil {
		return nil
	}
	err = errNotConfirmed
	defer func() {
		if err != nil {
			c.out.Resent()
			c.out.Halt() // not claimed: the caller is still the writer
		}
	}()
	size := 0
	for _, frames := range missing {
		size += len(frames)
	}
	err = b.Confirm(c.Received(), size)
	return err
}

// readAgain is read for a resumed session.
func (c *Carrier) readAgain() (over bool) {
	c.session.Back()
	return c.read()
}

// resend writes the frames that the peer lacks, and then the messages put meanwhile.
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
	c.transport.to(resent)
	c.writer.writeLoop()
}
