package asterisque

import (
	"bytes"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
)

// What is remembered of durable calls: how much of it there may be, of each owner and in all, and
// until when.

// fullLocked returns why there is no room for one more call of w that holds size bytes, or nil.
func (o *once) fullLocked(w *owner, size int, now time.Time) *Abort {
	own, more := w.durable, limits.Amount{Messages: 1, Bytes: size}
	switch {
	case !o.fits(own.held, more, o.share):
		return codec.OverloadedFor(untilForgotten(&own.answered, now), "the durable calls of this peer fill its share of what is remembered here: see DurableAnswers")
	case !o.fits(o.held, more, 1):
		return codec.OverloadedFor(untilForgotten(&o.answered, now), "too many durable calls are remembered here: see DurableAnswers")
	}
	return nil
}

// fits reports whether more than what is held fits into a share of what may be remembered.
func (o *once) fits(held, more limits.Amount, share float64) bool {
	return (o.most.Messages == 0 || held.Messages+more.Messages <= max(int(share*float64(o.most.Messages)), 1)) &&
		(o.most.Bytes == 0 || held.Bytes+more.Bytes <= int(share*float64(o.most.Bytes)))
}

// untilForgotten returns how long it is until something of q will be forgotten.
func untilForgotten(q *fifo.Queue[*memory], now time.Time) time.Duration {
	if q.Len() == 0 {
		return time.Second // all of them run, and may end at any moment
	}
	return max((*q.Peek()).until.Sub(now), minRetryAfter)
}

// countLocked counts what m holds more.
func (o *once) countLocked(m *memory, messages, bytes int) {
	for _, held := range []*limits.Amount{&o.held, &m.owner.durable.held} {
		held.Messages += messages
		held.Bytes += bytes
	}
	m.owner.tally.Add(bytes)
}

// rememberLocked keeps an answer, if there is room for it.
func (o *once) rememberLocked(m *memory, result []byte, a *Abort) (kept bool) {
	more := limits.Amount{Bytes: buffer.Allocated(len(result)) + heldByAbort(a)}
	kept = more.Bytes == 0 || o.fits(m.owner.durable.held, more, o.share) && o.fits(o.held, more, 1)
	if kept {
		m.result = bytes.Clone(result)
		if a != nil {
			m.abort = &Abort{Code: a.Code, Message: a.Message, Detail: bytes.Clone(a.Detail)}
		}
		m.size += more.Bytes
		o.countLocked(m, 0, more.Bytes)
	} else {
		m.abort = errNotKept
	}
	m.until = time.Now().Add(o.keep)
	o.answered.Push(m)
	m.owner.durable.answered.Push(m)
	o.scheduleLocked()
	return kept
}

// dropLocked forgets m.
func (o *once) dropLocked(m *memory) {
	delete(o.calls, m.key)
	o.countLocked(m, -1, -m.size)
	o.owners.leave(m.owner)
}

// forgetLocked forgets those whose time is up.
func (o *once) forgetLocked(now time.Time) {
	for o.answered.Len() > 0 {
		m := *o.answered.Peek()
		if now.Before(m.until) {
			return
		}
		o.answered.Pop()
		m.owner.durable.answered.Pop() // which is the same: both are in one order
		o.dropLocked(m)
	}
}

// scheduleLocked sees to it that the answers are forgotten in time.
func (o *once) scheduleLocked() {
	if o.timer != nil || o.ended || o.answered.Len() == 0 {
		return
	}
	o.timer = time.AfterFunc(time.Until((*o.answered.Peek()).until), func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.forgetLocked(time.Now())
		o.timer = nil
		o.scheduleLocked()
	})
}
