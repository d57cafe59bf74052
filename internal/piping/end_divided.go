package piping

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

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
