package carrier

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/cut"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// run calls f, and then lets go of everything if the session is over. If f panics, or ends the
// goroutine, another goroutine goes on.
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
	a := c.reader.loop()
	if a == nil {
		c.rest(c.read)
		return false
	}
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
// the reader reads on, and discards, until the peer has had the time to learn why.
func (c *Carrier) readOn() (over bool) {
	c.End(codec.ErrPanicked.Withf("code of the application has ended the goroutine that reads"))
	if !c.way.shuts() && c.reader.loop() == nil {
		c.rest(c.readOn)
		return false
	}
	return true
}

// rest lets a goroutine whose stack has not grown wait for the next frame, by f.
func (c *Carrier) rest(f func() (over bool)) {
	c.reader.rest.fresh.Store(uint32(c.meter.frames.Load()))
	go c.run(f) // ends as this one would have
}

// End ends the session because of cause; only the first cause is kept. Unless the peer said it, the
// peer is told, and the Wire stays open for a moment so that it can hear. End does not wait.
func (c *Carrier) End(cause *codec.Abort) { c.end(cause, !cause.Remote) }

// end is End which tells the peer only if tells is true.
func (c *Carrier) end(cause *codec.Abort, tells bool) {
	if c.ctx.Err() != nil {
		return // the end of one of its calls may have got here
	}
	var was State
	write := false
	c.ending.Do(func() {
		c.linger = time.AfterFunc(lingerTime(cause), c.closeWire) // before anybody knows of the end
		c.cancel(cause)
		was, _ = c.way.to(ended)
		var goodbye message.Control
		if tells {
			goodbye = message.SessionClose{Code: cause.Code, Message: cut.Text(cause.Message, c.out.MaxSize())}
		}
		if write = c.out.Close(goodbye); write { // after this no pipe departs
			c.writer.all.Add(1)
		}
		c.up.Ended(cause)
	})
	if write {
		defer c.writer.all.Done() // also if the Wire ends the goroutine
		c.writer.write()
	}
	if was == Away {
		go c.finish() // ends by itself
	}
}

// Lose ends the Wire because the peer does not answer, and says nothing, since nobody is there to
// read it. A session that cannot go on over another Wire ends with it.
func (c *Carrier) Lose(a *codec.Abort) {
	if c.reader.acks == nil {
		c.end(a, false)
	}
	c.closeWire()
}

// lingerTime returns how long the Wire may stay open after the end of a session, for the last batch
// to leave and the peer to read why.
func lingerTime(cause *codec.Abort) time.Duration {
	if cause.Code == codec.HardLimit {
		return 20 * time.Millisecond // by force: just enough for a peer that still reads
	}
	return time.Second
}

// finish waits for those who still write, and lets go of everything. The owner of the Carrier calls
// it once, at the end, when the session has ended and nobody reads any more.
func (c *Carrier) finish() {
	if !c.writer.none {
		select {
		case <-c.writer.told.fired():
		case <-c.writer.halted: // nobody writes any more
		}
	}
	c.closeWire()
	// which finds that it is closed, and lets go of what it has read
	guard.Apart(c.Log, c.way.wire, func() { c.way.wire.ReadFrame(0) })
	c.Settle()
	c.linger.Stop()
	if w := c.stall.Load(); w != nil {
		w.end()
	}
	c.writer.all.Wait()
	c.way.to(finished)
	defer c.gone.fire() // also if the log ends the goroutine
	c.Lookout.remove(c)
	if p := c.base.parts.Load(); p != nil {
		p.end()
	}
	c.live.part.End()
	c.up.Finished()
}

// Settle waits until whoever ends the session has ended all that runs.
func (c *Carrier) Settle() { c.ending.Do(func() {}) }

// Wait waits until the Carrier, whose session must have been ended, has let go of all, but not for
// code of the application on the goroutine of the reader, which may be what waits.
func (c *Carrier) Wait() {
	if !c.meter.inside() {
		<-c.gone.fired()
	}
}

// lookAt implements watched.
func (c *Carrier) lookAt(stood time.Duration, late bool) {
	if c.Away() {
		c.live.part.Tell(c.held()) // the frame that was arriving has gone with its Wire
		c.up.StillAway()
	} else if !guard.Run(c.Log, "wire", func() { c.look(stood, late) }, "session", c.up) {
		c.End(&codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: it panicked"})
	}
}

// look is lookAt while there is a Wire.
func (c *Carrier) look(stood time.Duration, late bool) {
	c.live.look(c.Now()-stood, late)
	c.nudge(c.Now())
	w, _ := c.way.present()
	c.reader.rest.look(w, uint32(c.meter.frames.Load()))
}

// nudge lets messages go on that wait for marks which do not come back: a little, and after the
// time of silence all of them, so that what is said of a peer that takes nothing holds.
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

// clock implements watched.
func (c *Carrier) clock() time.Duration { return c.Now() }

// every implements watched.
func (c *Carrier) every() time.Duration { return c.live.every() }

// index implements watched.
func (c *Carrier) index() *int32 { return &c.at }
