package carrier

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

// run calls f, and releases everything if f reports that the session is over. If f panics or ends
// the goroutine, another goroutine continues.
func (c *Carrier) run(f func() (over bool)) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			guard.Misbehaved(c.Log, "what reads a session", v, "session", c.session)
			c.closeWire() // no further frame is read
		}
		go c.run(c.readOn) // ends as this goroutine would have
	}()
	over := f()
	returned = true
	if over {
		c.finish()
	}
}

// read reads the Wire until the Wire is lost, and reports whether the session is over.
func (c *Carrier) read() (over bool) {
	a := c.reader.loop()
	if a == nil {
		c.rest(c.read)
		return false
	}
	if c.goesOnAfter(a) {
		return !c.leave(a) // the claiming goroutine continues
	}
	c.End(a)
	if a.Code != codec.Protocol {
		c.closeWire() // there is no peer to send the reason to
	}
	return true
}

// readOn continues after the goroutine of the reader was ended by application code, which ends the
// session. As after every end, the reader discards frames until the peer has had time to read the
// reason.
func (c *Carrier) readOn() (over bool) {
	c.End(codec.ErrPanicked.Withf("code of the application has ended the goroutine that reads"))
	if !c.transport.shuts() && c.reader.loop() == nil {
		c.rest(c.readOn)
		return false
	}
	return true
}

// rest starts a goroutine with a fresh stack that calls f and waits for the next frame.
func (c *Carrier) rest(f func() (over bool)) {
	c.reader.stack.fresh.Store(uint32(c.meter.frames.Load()))
	go c.run(f) // ends as this goroutine would have
}

// End ends the session with cause. Only the first cause is kept. Unless cause came from the peer,
// End sends it to the peer, and the Wire stays open for a moment so that the peer can read it. End
// does not block.
func (c *Carrier) End(cause *codec.Abort) { c.end(cause, !cause.Remote) }

// end is End. It sends the cause to the peer only if tells is true.
func (c *Carrier) end(cause *codec.Abort, tells bool) {
	if c.ctx.Err() != nil {
		return // the end of a call of this session may have led here
	}
	var was State
	write := false
	c.ending.Do(func() {
		c.linger = time.AfterFunc(lingerTime(cause), c.closeWire) // before the end is visible
		c.cancel(cause)
		was, _ = c.transport.to(ended)
		var goodbye message.Control
		if tells {
			goodbye = message.SessionClose{Code: cause.Code, Message: truncate.Text(cause.Message, c.out.MaxSize())}
		}
		if write = c.out.Close(goodbye); write { // no pipe sends after this
			c.writer.all.Add(1)
		}
		c.session.Ended(cause)
	})
	if write {
		defer c.writer.all.Done() // also if the Wire ends the goroutine
		c.writer.write()
	}
	if was == Away {
		go c.finish() // ends by itself
	}
}

// Lose closes the Wire because the peer does not answer, and sends no reason. A session that cannot
// resume ends with its Wire.
func (c *Carrier) Lose(a *codec.Abort) {
	if c.reader.acks == nil {
		c.end(a, false)
	}
	c.closeWire()
}

// lingerTime returns how long the Wire may stay open after the end of a session, for the last batch
// to be sent and for the peer to read the reason.
func lingerTime(cause *codec.Abort) time.Duration {
	if cause.Code == codec.HardLimit {
		return 20 * time.Millisecond // a forced end: just enough for a peer that still reads
	}
	return time.Second
}

// finish waits for the writer and releases everything. The owner of the Carrier calls it once,
// after the session has ended and reading has ended.
func (c *Carrier) finish() {
	if !c.writer.none {
		select {
		case <-c.writer.told.fired():
		case <-c.writer.halted: // the writer has ended
		}
	}
	c.closeWire()
	// the Wire, which is closed, releases the frame that it has read
	guard.Apart(c.Log, c.transport.wire, func() { c.transport.wire.ReadFrame(0) })
	c.Settle()
	c.linger.Stop()
	if w := c.stall.Load(); w != nil {
		w.end()
	}
	c.writer.all.Wait()
	c.transport.to(finished)
	defer c.gone.fire() // also if the log ends the goroutine
	c.Keepalive.remove(c)
	if p := c.carrierBase.parts.Load(); p != nil {
		p.end()
	}
	c.live.part.End()
	c.session.Finished()
}

// Settle waits until a concurrent End has ended all running calls.
func (c *Carrier) Settle() { c.ending.Do(func() {}) }

// Wait waits until the Carrier has released everything. The session must have ended. It does not
// wait for application code on the goroutine of the reader, because that code may be the caller.
func (c *Carrier) Wait() {
	if !c.meter.inside() {
		<-c.gone.fired()
	}
}

// lookAt implements keepaliveClient.
func (c *Carrier) lookAt(now time.Duration, late bool) {
	if c.Away() {
		c.live.part.Tell(c.held()) // the frame that was arriving is lost with its Wire
		c.session.StillAway()
	} else if !guard.Run(c.Log, "wire", func() { c.look(now, late) }, "session", c.session) {
		c.End(&codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: it panicked"})
	}
}

// look is lookAt while there is a Wire.
func (c *Carrier) look(now time.Duration, late bool) {
	c.live.look(now, late)
	c.nudge(c.Now())
	w, _ := c.transport.present()
	c.reader.stack.look(w, uint32(c.meter.frames.Load()))
}

// nudge releases messages that wait for overdue marks: a few of them, and all of them after the
// time of silence, so that the write timeout applies to a peer that reads nothing.
func (c *Carrier) nudge(now time.Duration) {
	r := c.route.Load()
	if r == nil {
		return
	}
	here, anywhere := r.overdue(now, c.grace())
	if (here || anywhere) && c.out.Nudge(anywhere) {
		c.writer.write()
	}
}

// clock implements keepaliveClient.
func (c *Carrier) clock() time.Duration { return c.Now() }

// every implements keepaliveClient.
func (c *Carrier) every() time.Duration { return c.live.every() }

// index implements keepaliveClient.
func (c *Carrier) index() *int32 { return &c.at }
