package piping

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
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

// sendDivided sends a Block that does not fit into the window, in pieces as credit comes. After an
// error no further piece is sent. A Block that expires meanwhile is dropped.
func (e *End) sendDivided(ctx context.Context, b Outgoing) error {
	if n, most := len(b.Payload), e.port.MaxBlock(); n > most {
		return codec.ErrTooLarge.Withf("a Block of %d bytes, and the peer takes %d", n, most)
	}
	err := e.sendPieces(ctx, &b)
	if err == nil || b.Expires.IsZero() || ctx.Err() != nil || time.Now().Before(b.Expires) || e.closed() != nil {
		return err
	}
	e.port.Expire(&b)
	return nil
}

// sendPieces sends the pieces of b, until b expires.
func (e *End) sendPieces(ctx context.Context, b *Outgoing) error {
	if !b.Expires.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, b.Expires)
		defer cancel()
	}
	whole := len(b.Payload)
	at, err := 0, e.beginDivided(ctx)
	if err != nil {
		return err
	}
	defer e.endDivided()
	for first := true; err == nil && (first || at < whole); first = false {
		at, err = e.sendPiece(ctx, b, at)
	}
	if err == nil {
		return nil
	}
	e.mu.Lock()
	begun := e.out.abandon()
	e.mu.Unlock()
	if begun {
		e.port.Abandon(whole)
	}
	return err
}

// beginDivided blocks until the Block of the caller may be the divided one, and all Blocks that
// were counted as sent before have reached the port: their places are before it.
func (e *End) beginDivided(ctx context.Context) error {
	mine := false
	err := e.await(ctx, func() (wait *signal, err error) {
		if err := e.closedLocked(); err != nil {
			return nil, err
		}
		q := e.out.waiters()
		if mine = mine || q.divided.take(); !mine {
			return &q.credit, nil
		}
		if !e.inflight.noneLocked() { // the last one of them wakes the caller
			return &q.divided.room, nil
		}
		return nil, nil
	})
	if err != nil && mine {
		e.endDivided()
	}
	return err
}

// sendPiece sends the piece of the divided Block that begins at the given place of its payload. It
// returns the place after it.
func (e *End) sendPiece(ctx context.Context, b *Outgoing, at int) (int, error) {
	whole, n := len(b.Payload), 0
	err := e.await(ctx, func() (wait *signal, err error) {
		if err := e.closedLocked(); err != nil {
			return nil, err
		}
		ok := false
		if n, ok = e.out.admitPiece(whole-at, e.terms.PeerOverhead); !ok {
			return &e.out.queue.divided.room, nil
		}
		return nil, nil
	})
	if err != nil {
		return at, err
	}
	p := *b
	if n < whole {
		p = Outgoing{Payload: b.Payload[at : at+n], Whole: whole, Offset: at, Expires: b.Expires, Marker: b.Marker}
	}
	if err := e.port.Send(ctx, p); err != nil {
		e.mu.Lock()
		e.out.undoPiece(n, at == 0, e.terms.PeerOverhead)
		e.mu.Unlock()
		return at, e.sendError(err)
	}
	if at += n; at == whole && n < whole && b.Memory != nil {
		b.Memory.Release()
	}
	return at, nil
}

// endDivided wakes the senders that wait behind the divided Block, which is sent or abandoned.
func (e *End) endDivided() {
	e.mu.Lock()
	e.out.queue.divided.present = false
	spare := e.spareLocked() > 0
	e.wakeLocked()
	e.mu.Unlock()
	if spare {
		e.port.Watch()
	}
}
