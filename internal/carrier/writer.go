package carrier

import (
	"encoding/binary"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// inlineRounds is the number of batches that a caller writes before a goroutine takes over: its own
// batch, and one more with the messages put meanwhile.
const inlineRounds = 2

// writer writes the content of the outbox, one goroutine at a time. Package outbox determines which
// one: a caller that has found no writer, the reader, or a goroutine started for the purpose.
type writer struct {
	*carrierBase // fixed

	unwritten bool // the reader is the writer and is about to write; belongs to the reader
	// there is no writer before the next Wire; belongs to the owner of the Carrier
	none      bool
	coalescer coalescer     // belongs to the writer
	streaming atomic.Uint32 // see streams: 1 + number of received frames, the low bits

	all sync.WaitGroup // goroutines that write, and the sender of the goodbye

	told signal // fired by the writer when nothing will be written any more
	// receives a token from the writer when the writer has found that the Wire is lost, and stays
	// the writer; nil if the session ends with its Wire
	halted chan struct{}
}

// writeWhen writes the content of the outbox, now or after reading. The caller has become the
// writer.
func (w *writer) writeWhen(when When) {
	if when == AfterReading {
		w.unwritten = true
		return
	}
	w.write()
}

// write writes the content of the outbox. The caller has become the writer. write does not block: a
// goroutine continues if the Wire would block, or if messages keep coming.
func (w *writer) write() {
	if w.transport.try == nil {
		w.all.Go(w.writeLoop)
		return
	}
	for range inlineRounds {
		batch, end := w.take()
		if batch == nil {
			w.wrote(end)
			return
		}
		if !w.tryWrite(batch) {
			return
		}
	}
	w.all.Go(w.writeLoop)
}

// take returns the next batch of the outbox, and may yield to other goroutines before.
func (w *writer) take() (batch []byte, end outbox.End) {
	if w.coalescer.skip > 0 {
		w.coalescer.skip--
		return w.out.Take()
	}
	began := w.Now()
	runtime.Gosched()
	turn := w.Now() - began
	before := w.coalescer
	w.coalescer = before.next(turn, false) // now: if there is no batch, the writer may change
	if batch, end = w.out.Take(); batch != nil && manyFrames(batch) {
		w.coalescer = before.next(turn, true)
	}
	return batch, end
}

// tryWrite writes batch if that does not block. Otherwise a goroutine becomes the writer and writes
// the rest.
func (w *writer) tryWrite(batch []byte) (done bool) {
	if w.transport.try == nil || w.out.Segments() != nil {
		// a batch in segments is large: a goroutine writes it, and the sender continues
		w.all.Go(func() { w.writeRest(batch, 0) })
		return false
	}
	n, err := w.tryWriteBatch(batch)
	if err != nil {
		w.writeFailed(err)
		return false
	}
	if n < len(batch) {
		w.outbound.SetCongested(true)
		w.all.Go(func() { w.writeRest(batch, n) })
		return false
	}
	w.meter.batches.Add(1)
	w.out.Written(batch)
	return true
}

// writeFull is write for a caller that has filled a batch with small Blocks and is about to send
// the next one.
func (w *writer) writeFull() {
	batch, end := w.out.Take()
	if batch != nil {
		if !w.tryWrite(batch) {
			return
		}
		batch, end = w.out.Take()
	}
	if batch == nil {
		w.wrote(end)
		return
	}
	w.all.Go(func() { w.writeRest(batch, 0) })
}

// writeLater writes the small Blocks in a batch that was not filled.
func (w *writer) writeLater() {
	if w.out.Claim() {
		w.write()
	}
}

// writeRest writes the rest of batch after its first n bytes, and then the messages put meanwhile.
func (w *writer) writeRest(batch []byte, n int) {
	if err := w.writeBatch(batch[n:]); err != nil {
		w.writeFailed(err)
		return
	}
	w.out.Written(batch)
	w.writeLoop()
}

// writeLoop writes until the outbox is empty or the Wire is closed. It blocks for the transport if
// necessary.
func (w *writer) writeLoop() {
	for {
		batch, end := w.take()
		if batch == nil {
			w.wrote(end)
			return
		}
		if w.out.Waiting() > 0 {
			w.outbound.SetCongested(true) // there is more than the transport accepts at once
		}
		if err := w.writeBatch(batch); err != nil {
			w.writeFailed(err)
			return
		}
		w.out.Written(batch)
	}
}

// tryWriteBatch writes as much of batch as the Wire accepts without blocking.
func (w *writer) tryWriteBatch(batch []byte) (n int, err error) {
	returned := false
	defer func() {
		if !returned {
			err = w.writerBroke(recover())
		}
	}()
	n, err = w.transport.try.TryWriteBatch(batch)
	returned = true
	return n, err
}

// writeBatch writes batch to the Wire.
func (w *writer) writeBatch(batch []byte) (err error) {
	returned := false
	w.meter.writing.Store(true)
	defer func() {
		w.meter.batches.Add(1)
		w.meter.writing.Store(false)
		if !returned {
			err = w.writerBroke(recover())
		}
	}()
	err = giveToWire(w.transport.wire, batch, w.out.Segments())
	returned = true
	return err
}

// giveToWire writes batch, or its segments if there are any, in one call if the Wire supports that.
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
func (w *writer) wrote(end outbox.End) {
	switch end {
	case outbox.Idle:
		// frames kept for a resume may still be at the soft limit; the Wire does not block them
		// either
		if w.outbound.State() != limits.Ready {
			w.outbound.SetCongested(false)
		}
	case outbox.Full:
		w.outbound.SetCongested(true)
	case outbox.Last:
		w.told.fire()
	case outbox.Halted:
		w.halted <- struct{}{}
	}
}

// writeFailed is called when the Wire cannot be written any more. A session that cannot resume ends
// with it. The caller remains the writer, so that no other goroutine tries again.
func (w *writer) writeFailed(err error) {
	a := wireFailed(err)
	if w.host.goesOnAfter(a) {
		w.closeWire()
		w.halted <- struct{}{}
		return
	}
	w.host.End(a)
	w.closeWire()
	w.told.fire()
}

// writerBroke returns the error for a Wire that has not returned from a write. v is as for
// [guard.Misbehaved]. If the goroutine ends, so that no caller would get the error, the session
// ends as well.
func (w *writer) writerBroke(v any) error {
	a := guard.Misbehaved(w.Log, "wire", v, "session", w.session)
	if v == nil {
		w.host.End(&codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: " + a.Message})
		w.writeFailed(a)
	}
	return a
}

// smallBlock is the size, in bytes, up to which a Block is better written together with further
// Blocks.
const smallBlock = 8 << 10

// putMore is Put for one of many small Blocks.
func (w *writer) putMore(f *outbox.Flow, m *outbox.Message) error {
	write, later, err := w.out.PutMore(f, m)
	switch {
	case write:
		w.writeFull()
	case later:
		// ends by itself; End does not wait for it, because the session may have ended already
		go w.writeLater()
	}
	return err
}

// streams is called for each small Block. It reports whether no frame of the peer has arrived since
// the previous one. Then further small Blocks are likely to follow at once.
func (w *writer) streams() bool {
	heard := uint32(w.meter.frames.Load()) + 1
	if w.streaming.Load() == heard {
		return true
	}
	w.streaming.Store(heard)
	return false
}

// writeAnswers writes the messages put with AfterReading. It is for the reader.
func (w *writer) writeAnswers() {
	if w.unwritten {
		w.unwritten = false
		w.write()
	}
}

// control sends a Control.
func (w *writer) control(m message.Control, when When) {
	if when == WithNext {
		w.controlled(false, w.out.PutAhead(m), when)
		return
	}
	write, err := w.out.PutControl(m)
	w.controlled(write, err, when)
}

// controlled handles the results of putting a Control: it writes, or ends the session.
func (w *writer) controlled(write bool, err error, when When) {
	if write {
		w.writeWhen(when)
	}
	if err != nil && !errors.Is(err, outbox.ErrClosed) {
		w.host.End(violation("%v", err))
	}
}
