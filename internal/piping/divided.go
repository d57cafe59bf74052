package piping

import (
	"github.com/asterisque-go/asterisque/codec/message"
)

// pieceSize is the size of the largest piece of a Block, in bytes. A piece fits into a batch of the
// outbox, and does not fill the limits of the session while it waits for the Wire.
const pieceSize = 62 << 10

// divided is a Block that does not fit into the window, and is sent in pieces as credit comes. Its
// first piece announces the end of the Block to the peer. The Blocks of other senders wait behind
// it.
type divided struct {
	present bool
	begun   bool   // a piece was sent
	rest    int    // bytes of the payload that were not sent
	room    signal // wakes its sender
}

// take makes the Block of the caller the divided one, unless there is one.
func (d *divided) take() bool {
	if d.present {
		return false
	}
	d.present, d.begun = true, false
	return true
}

// admitPiece counts the next piece of the divided Block as sent, and returns its size. ok is false
// if the piece has to wait for credit. rest is the unsent part of the payload. The first piece
// costs overhead as well, and may be the whole Block.
func (s *sender) admitPiece(rest int, overhead uint64) (n int, ok bool) {
	d := &s.queue.divided
	if d.begun {
		overhead = 0
	}
	if !s.fits(overhead + uint64(min(rest, message.LeastPart))) {
		return 0, false
	}
	if n = min(s.room(overhead), rest); d.begun || n < rest {
		n = min(n, pieceSize)
	}
	s.sent += overhead + uint64(n)
	d.begun, d.rest = true, rest-n
	return n, true
}

// undoPiece reverts admitPiece for n bytes that were not sent. first reports that they were the
// first piece.
func (s *sender) undoPiece(n int, first bool, overhead uint64) {
	d := &s.queue.divided
	s.sent -= uint64(n)
	d.rest += n
	if first {
		s.sent -= overhead
		d.begun = false
	}
}

// abandon counts the whole divided Block as sent, as the peer does. It reports whether a piece of
// the Block was sent, so that the peer has to be informed. The unsent rest is counted, and not up
// to a former total: Blocks before this one may have been dropped since.
func (s *sender) abandon() bool {
	d := &s.queue.divided
	if d.begun {
		s.sent += uint64(d.rest)
	}
	return d.begun
}
