package carrier

import (
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/wire"
)

// inlineRounds is how many batches a caller writes before a goroutine takes over: its own, and one
// more of what came while it wrote.
const inlineRounds = 2

// writers are those who write, one at a time: package outbox says who. A writer may be the caller
// that has found nobody else at it, the reader, or a goroutine.
type writers struct {
	all sync.WaitGroup // goroutines that write, and whoever says goodbye

	// closed by the writer when nothing will ever be written again
	told chan struct{}
	// holds one when the writer has found out that the Wire is lost, and stays the writer; nil if
	// the session ends with its Wire
	halted chan struct{}
	// nobody writes, nor will before there is another Wire; belongs to the owner of the Carrier
	none bool

	streaming atomic.Uint64 // see streams: 1 + how many frames had arrived
}

func (w *writers) init(resumes bool) {
	w.told = make(chan struct{})
	if resumes {
		w.halted = make(chan struct{}, 1)
	}
}

// writeWhen writes what is in the outbox, whose writer the caller has become.
func (c *Carrier) writeWhen(when When) {
	if when == AfterReading {
		c.reader.unwritten = true
		return
	}
	c.write()
}

// write sends what is in the outbox, whose writer the caller has become. It does not block: when
// the transport would, or there is more and more to send, a goroutine goes on with it.
func (c *Carrier) write() {
	if c.way.try == nil {
		c.writers.all.Go(c.writeLoop)
		return
	}
	for range inlineRounds {
		runtime.Gosched() // those who are about to send share the system call
		batch, end := c.out.Take()
		if batch == nil {
			c.wrote(end)
			return
		}
		if !c.tryWrite(batch) {
			return
		}
	}
	c.writers.all.Go(c.writeLoop)
}

// tryWrite writes batch if that does not wait. If it would, a goroutine becomes the writer, and
// goes on with what is left.
func (c *Carrier) tryWrite(batch []byte) (done bool) {
	if c.way.try == nil || c.out.Segments() != nil {
		// in pieces is what is large: its sender goes on meanwhile
		c.writers.all.Go(func() { c.writeRest(batch, 0) })
		return false
	}
	n, err := c.tryWriteBatch(batch)
	if err != nil {
		c.writeFailed(err)
		return false
	}
	if n < len(batch) {
		c.outbound.SetCongested(true)
		c.writers.all.Go(func() { c.writeRest(batch, n) })
		return false
	}
	c.live.batches.Add(1)
	c.out.Written(batch)
	return true
}

// writeFull is write for a caller that has filled a batch with small Blocks, and goes on with the
// next one at once.
func (c *Carrier) writeFull() {
	batch, end := c.out.Take()
	if batch != nil {
		if !c.tryWrite(batch) {
			return
		}
		batch, end = c.out.Take()
	}
	if batch == nil {
		c.wrote(end)
		return
	}
	c.writers.all.Go(func() { c.writeRest(batch, 0) })
}

// writeLater writes what small Blocks have left in a batch that they have not filled.
func (c *Carrier) writeLater() {
	if c.out.Claim() {
		c.write()
	}
}

// writeRest writes what is left of batch after its first n bytes, and then what has come meanwhile.
func (c *Carrier) writeRest(batch []byte, n int) {
	if err := c.writeBatch(batch[n:]); err != nil {
		c.writeFailed(err)
		return
	}
	c.out.Written(batch)
	c.writeLoop()
}

// writeLoop writes until nothing is left, waiting for the transport where it has to. It ends then,
// or when the Wire is closed.
func (c *Carrier) writeLoop() {
	for {
		runtime.Gosched() // as in write
		batch, end := c.out.Take()
		if batch == nil {
			c.outbound.SetCongested(false)
			c.wrote(end)
			return
		}
		if c.out.Waiting() > 0 {
			c.outbound.SetCongested(true) // there is more than the transport takes at once
		}
		if err := c.writeBatch(batch); err != nil {
			c.writeFailed(err)
			return
		}
		c.out.Written(batch)
	}
}

// tryWriteBatch writes as much of batch as the Wire takes without waiting.
func (c *Carrier) tryWriteBatch(batch []byte) (n int, err error) {
	returned := false
	defer func() {
		if !returned {
			err = c.writerBroke(recover())
		}
	}()
	n, err = c.way.try.TryWriteBatch(batch)
	returned = true
	return n, err
}

// writeBatch gives batch to the Wire.
func (c *Carrier) writeBatch(batch []byte) (err error) {
	returned := false
	c.live.writing.Store(true)
	defer func() {
		c.live.batches.Add(1)
		c.live.writing.Store(false)
		if !returned {
			err = c.writerBroke(recover())
		}
	}()
	err = giveToWire(c.way.wire, batch, c.out.Segments())
	returned = true
	return err
}

// giveToWire writes batch, or its segments if there are any, in one piece if the Wire can take it
// so.
func giveToWire(w wire.Wire, batch []byte, segments [][]byte) error {
	if segments != nil {
		return w.(wire.VectorWriter).WriteVector(segments)
	}
	if w, ok := w.(wire.BatchWriter); ok {
		return w.WriteBatch(batch)
	}
	var frames [][]byte
	for len(batch) > 0 {
		n := 4 + binary.BigEndian.Uint32(batch)
		frames = append(frames, batch[4:n])
		batch = batch[n:]
	}
	return w.WriteFrames(frames)
}

// wrote is called when a writer has nothing left to write.
func (c *Carrier) wrote(end outbox.End) {
	switch end {
	case outbox.Last:
		close(c.writers.told)
	case outbox.Halted:
		c.writers.halted <- struct{}{}
	}
}

// writeFailed is called when the Wire cannot be written any more, which ends a session that cannot
// go on over another one. The writer stays the writer, so that nobody tries again.
func (c *Carrier) writeFailed(err error) {
	a := wireFailed(err)
	if c.goesOnAfter(a) {
		c.closeWire()
		c.writers.halted <- struct{}{}
		return
	}
	c.End(a)
	c.closeWire()
	close(c.writers.told)
}

// wireFailed returns the error of a Wire that has failed with err.
func wireFailed(err error) *codec.Abort {
	return &codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: " + err.Error(), Cause: err}
}

// writerBroke returns the error of a Wire that has not returned from writing. v is as for
// [guard.Misbehaved]. If the goroutine ends, so that nobody would hear of the error, the session
// does as well.
func (c *Carrier) writerBroke(v any) error {
	a := guard.Misbehaved(c.Log, "wire", v, "session", c.up)
	if v == nil {
		c.End(&codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: " + a.Message})
		c.writeFailed(a)
	}
	return a
}
