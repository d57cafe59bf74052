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

// inlineRounds is how many batches a caller writes before a goroutine takes over: its own, and one
// more of what came while it wrote.
const inlineRounds = 2

// writer writes what is in the outbox. One goroutine at a time does so, and package outbox says
// which: a caller that has found no writer, the reader, or a goroutine that was started for it.
type writer struct {
	*base // fixed

	unwritten bool // the reader is the writer, and is about to write; belongs to the reader
	// nobody writes, nor will before there is another Wire; belongs to the owner of the Carrier
	none      bool
	company   company       // belongs to the writer
	streaming atomic.Uint32 // see streams: 1 + how many frames had arrived, the low bits

	all sync.WaitGroup // goroutines that write, and whoever says goodbye

	told signal // by the writer, when nothing will ever be written again
	// gets a token from the writer when it has found out that the Wire is lost, and then stays the
	// writer; nil if the session ends with its Wire
	halted chan struct{}
}

// writeWhen writes what is in the outbox, now or after reading. The caller has become the writer.
func (w *writer) writeWhen(when When) {
	if when == AfterReading {
		w.unwritten = true
		return
	}
	w.write()
}

// write writes what is in the outbox. The caller has become the writer. It does not block: when the
// Wire would, or when there is more and more to write, a goroutine goes on with it.
func (w *writer) write() {
	if w.way.try == nil {
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

// take returns the next batch of the outbox, if need be after a turn of the others.
func (w *writer) take() (batch []byte, end outbox.End) {
	if w.company.skip > 0 {
		w.company.skip--
		return w.out.Take()
	}
	began := w.Now()
	runtime.Gosched()
	turn := w.Now() - began
	before := w.company
	w.company = before.next(turn, false) // now: without a batch, another one may be the writer next
	if batch, end = w.out.Take(); batch != nil && manyFrames(batch) {
		w.company = before.next(turn, true)
	}
	return batch, end
}

// tryWrite writes batch if that does not wait. If it would, a goroutine becomes the writer, and
// goes on with what is left.
func (w *writer) tryWrite(batch []byte) (done bool) {
	if w.way.try == nil || w.out.Segments() != nil {
		// a batch in pieces is large: a goroutine writes it, and its sender goes on
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

// writeFull is write for a caller that has filled a batch with small Blocks, and goes on with the
// next one at once.
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

// writeLater writes what small Blocks have left in a batch that they have not filled.
func (w *writer) writeLater() {
	if w.out.Claim() {
		w.write()
	}
}

// writeRest writes what is left of batch after its first n bytes, and then what has come meanwhile.
func (w *writer) writeRest(batch []byte, n int) {
	if err := w.writeBatch(batch[n:]); err != nil {
		w.writeFailed(err)
		return
	}
	w.out.Written(batch)
	w.writeLoop()
}

// writeLoop writes until nothing is left, waiting for the transport where it has to. It ends then,
// or when the Wire is closed.
func (w *writer) writeLoop() {
	for {
		batch, end := w.take()
		if batch == nil {
			w.wrote(end)
			return
		}
		if w.out.Waiting() > 0 {
			w.outbound.SetCongested(true) // there is more than the transport takes at once
		}
		if err := w.writeBatch(batch); err != nil {
			w.writeFailed(err)
			return
		}
		w.out.Written(batch)
	}
}

// tryWriteBatch writes as much of batch as the Wire takes without waiting.
func (w *writer) tryWriteBatch(batch []byte) (n int, err error) {
	returned := false
	defer func() {
		if !returned {
			err = w.writerBroke(recover())
		}
	}()
	n, err = w.way.try.TryWriteBatch(batch)
	returned = true
	return n, err
}

// writeBatch gives batch to the Wire.
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
	err = giveToWire(w.way.wire, batch, w.out.Segments())
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
func (w *writer) wrote(end outbox.End) {
	switch end {
	case outbox.Idle:
		// what a resume keeps may still be at the soft limit, and is not held up by the Wire either
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

// writeFailed is called when the Wire cannot be written any more, which ends a session that cannot
// go on over another one. The writer stays the writer, so that nobody tries again.
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

// writerBroke returns the error of a Wire that has not returned from writing. v is as for
// [guard.Misbehaved]. If the goroutine ends, so that nobody would hear of the error, the session
// does as well.
func (w *writer) writerBroke(v any) error {
	a := guard.Misbehaved(w.Log, "wire", v, "session", w.up)
	if v == nil {
		w.host.End(&codec.Abort{Code: codec.SessionClosed, Message: "the wire failed: " + a.Message})
		w.writeFailed(a)
	}
	return a
}

// smallBlock is the size, in bytes, up to which a Block is better written together with others.
const smallBlock = 8 << 10

// putMore is Put for one of many small Blocks.
func (w *writer) putMore(f *outbox.Flow, m *outbox.Message) error {
	write, later, err := w.out.PutMore(f, m)
	switch {
	case write:
		w.writeFull()
	case later:
		// it ends by itself; nobody waits for it, because the session may have ended already
		go w.writeLater()
	}
	return err
}

// streams is asked for each small Block. It reports whether nothing has come from the peer since
// the last one. Then more of them are likely to follow at once.
func (w *writer) streams() bool {
	heard := uint32(w.meter.frames.Load()) + 1
	if w.streaming.Load() == heard {
		return true
	}
	w.streaming.Store(heard)
	return false
}

// writeAnswers writes what was put to go after reading. It is for the reader.
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

// controlled sees to what follows from putting a Control.
func (w *writer) controlled(write bool, err error, when When) {
	if write {
		w.writeWhen(when)
	}
	if err != nil && !errors.Is(err, outbox.ErrClosed) {
		w.host.End(violation("%v", err))
	}
}
