package asterisque

import (
	"encoding/binary"
	"errors"
	"runtime"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/wire"
)

// inlineRounds is how many batches a caller writes before a goroutine takes over: its own, and one
// more of what came while it wrote.
const inlineRounds = 2

// control sends a Control.
func (s *Session) control(c message.Control) {
	s.controlled(s.out.PutControl(c))
}

// controlled sees to what follows from handing a Control to the outbox.
func (s *Session) controlled(write bool, err error) {
	if err != nil {
		if !errors.Is(err, outbox.ErrClosed) {
			s.fail(violation("%v", err))
		}
		return
	}
	if write {
		s.write()
	}
}

// write sends what is in the outbox, whose writer the caller has become. It does not block: when
// the transport would, or there is more and more to send, a goroutine goes on with it.
func (s *Session) write() {
	if s.try == nil {
		s.writers.Go(s.writeLoop)
		return
	}
	for range inlineRounds {
		runtime.Gosched() // those who are about to send share the system call
		batch, end := s.out.Take()
		if batch == nil {
			s.wrote(end)
			return
		}
		if !s.tryWrite(batch) {
			return
		}
	}
	s.writers.Go(s.writeLoop)
}

// tryWrite writes batch if that does not wait. If it would, a goroutine becomes the writer, and
// goes on with what is left.
func (s *Session) tryWrite(batch []byte) (done bool) {
	if s.try == nil || s.out.Segments() != nil {
		// in pieces is what is large: its sender goes on meanwhile
		s.writers.Go(func() { s.writeRest(batch, 0) })
		return false
	}
	n, err := s.tryWriteBatch(batch)
	if err != nil {
		s.writeFailed(err)
		return false
	}
	if n < len(batch) {
		s.outbound.SetCongested(true)
		s.writers.Go(func() { s.writeRest(batch, n) })
		return false
	}
	s.live.batches.Add(1)
	s.out.Written(batch)
	return true
}

// smallBlock is the size, in bytes, up to which a Block is better written together with others.
const smallBlock = 8 << 10

// streams reports whether nothing has come from the peer since it was asked last, for a small
// Block: then more of them are likely to follow at once.
func (s *Session) streams() bool {
	heard := s.live.frames.Load() + 1
	if s.streaming.Load() == heard {
		return true
	}
	s.streaming.Store(heard)
	return false
}

// writeFull is write for who has filled a batch with small Blocks, and goes on with the next one at
// once.
func (s *Session) writeFull() {
	batch, end := s.out.Take()
	if batch != nil {
		if !s.tryWrite(batch) {
			return
		}
		batch, end = s.out.Take()
	}
	if batch == nil {
		s.wrote(end)
		return
	}
	s.writers.Go(func() { s.writeRest(batch, 0) })
}

// writeLater writes what small Blocks have left in a batch that they have not filled.
func (s *Session) writeLater() {
	if s.out.Claim() {
		s.write()
	}
}

// writeRest writes what is left of batch after its first n bytes, and then what has come meanwhile.
func (s *Session) writeRest(batch []byte, n int) {
	if err := s.writeBatch(batch[n:]); err != nil {
		s.writeFailed(err)
		return
	}
	s.out.Written(batch)
	s.writeLoop()
}

// writeLoop writes until nothing is left, waiting for the transport where it has to. It ends then,
// or when the Wire is closed.
func (s *Session) writeLoop() {
	for {
		runtime.Gosched() // as in write
		batch, end := s.out.Take()
		if batch == nil {
			s.outbound.SetCongested(false)
			s.wrote(end)
			return
		}
		if s.out.Waiting() > 0 {
			s.outbound.SetCongested(true) // there is more than the transport takes at once
		}
		if err := s.writeBatch(batch); err != nil {
			s.writeFailed(err)
			return
		}
		s.out.Written(batch)
	}
}

// writeBatch gives batch to the Wire, in one piece if the Wire can take it so.
func (s *Session) writeBatch(batch []byte) (err error) {
	returned := false
	s.live.writing.Store(true)
	defer func() {
		s.live.batches.Add(1)
		s.live.writing.Store(false)
		if !returned {
			err = s.writerBroke(recover())
		}
	}()
	err = s.giveToWire(batch)
	returned = true
	return err
}

// giveToWire is writeBatch.
func (s *Session) giveToWire(batch []byte) error {
	if pieces := s.out.Segments(); pieces != nil {
		return s.wire.(wire.VectorWriter).WriteVector(pieces)
	}
	if w, ok := s.wire.(wire.BatchWriter); ok {
		return w.WriteBatch(batch)
	}
	var frames [][]byte
	for len(batch) > 0 {
		n := 4 + binary.BigEndian.Uint32(batch)
		frames = append(frames, batch[4:n])
		batch = batch[n:]
	}
	return s.wire.WriteFrames(frames)
}

// wrote is called when a writer has nothing left to write.
func (s *Session) wrote(end outbox.End) {
	switch end {
	case outbox.Last:
		close(s.told)
	case outbox.Halted:
		s.halted <- struct{}{}
	}
}

// writeFailed is called when the Wire cannot be written any more, which ends a session that cannot
// be resumed. The writer stays the writer, so that nobody tries again.
func (s *Session) writeFailed(err error) {
	a := &Abort{Code: codec.SessionClosed, Message: "the wire failed: " + err.Error(), Cause: err}
	if s.resumable(a) {
		s.closeWire()
		s.halted <- struct{}{}
		return
	}
	s.fail(a)
	s.closeWire()
	close(s.told)
}
