package carrier

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/cut"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// End ends the session because of cause; only the first cause is kept. Unless the peer said it, the
// peer is told, and the Wire stays open for a moment so that it can hear. End does not wait.
func (c *Carrier) End(cause *codec.Abort) {
	if c.ctx.Err() != nil {
		return // it may be the end of one of its calls that got here
	}
	var was State
	write := false
	c.ending.Do(func() {
		c.linger = time.AfterFunc(lingerTime(cause), c.closeWire) // before anybody knows of the end
		c.cancel(cause)
		was, _ = c.way.to(ended)
		var goodbye message.Control
		if !cause.Remote {
			goodbye = message.SessionClose{Code: cause.Code, Message: cut.Text(cause.Message, c.out.MaxSize())}
		}
		if write = c.out.Close(goodbye); write { // after this no pipe departs
			c.writers.all.Add(1)
		}
		c.up.Ended(cause)
	})
	if write {
		defer c.writers.all.Done() // also if the Wire ends the goroutine
		c.write()
	}
	if was == Away {
		go c.finish() // ends by itself
	}
}

// lingerTime returns how long the Wire may stay open after the end of a session, for the last batch
// to leave and the peer to read why.
func lingerTime(cause *codec.Abort) time.Duration {
	if cause.Code == codec.HardLimit {
		return 20 * time.Millisecond // by force: just enough for a peer that still reads
	}
	return time.Second
}

// finish is called once, at the end, by whoever owns the Carrier, when the session has ended and
// nobody reads any more: it waits for those who still write, and lets go of all that there is.
func (c *Carrier) finish() {
	if !c.writers.none {
		select {
		case <-c.writers.told:
		case <-c.writers.halted: // nobody writes any more
		}
	}
	c.closeWire()
	// which finds that it is closed, and lets go of what it has read
	guard.Apart(c.Log, c.way.wire, func() { c.way.wire.ReadFrame(0) })
	c.Settle()
	c.linger.Stop()
	c.stall.end()
	c.writers.all.Wait()
	c.way.to(finished)
	defer close(c.gone) // also if the log ends the goroutine
	c.Lookout.remove(c)
	c.live.part.End()
	c.up.Finished()
}

// Settle waits until whoever ends the session has ended all that runs.
func (c *Carrier) Settle() { c.ending.Do(func() {}) }

// Wait waits until the Carrier, whose session must have been ended, has let go of all, but not for
// code of the application on the goroutine of the reader, which may be what waits.
func (c *Carrier) Wait() {
	if !c.insideCode() {
		<-c.gone
	}
}

// Gone returns a channel that is closed when the Carrier has let go of all.
func (c *Carrier) Gone() <-chan struct{} { return c.gone }
