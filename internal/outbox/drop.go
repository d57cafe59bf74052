package outbox

import (
	"time"

	"github.com/asterisque-go/asterisque/codec/message"
)

// Reason says why a message was dropped.
type Reason uint8

const (
	Closed     Reason = iota // the Outbox was closed first
	Expired                  // its time was up
	Thinned                  // it was under pressure, and its loss rate allowed it
	NoFunction               // the peer has no such function
	Draining                 // the peer takes no new calls
	Ended                    // the call ended first, for whatever other reason
)

// Drop tells of a message that was dropped.
type Drop struct {
	Open   bool // an Open, and not a Block
	Reason Reason
	Marker any
}

// Thin judges every Block in the queue that was not yet, as if it were put now under pressure.
func (o *Outbox) Thin() {
	o.mu.Lock()
	defer o.unlock()
	gaps := make(map[*Flow]uint64) // Blocks dropped since the last one that was kept
	o.queue.Filter(func(m *Message) bool {
		f := m.flow
		if !f.thin(m) {
			m.Skipped += gaps[f]
			delete(gaps, f)
			return true
		}
		gaps[f] += 1 + m.Skipped
		f.left(len(m.Payload))
		o.flushes.left(m, false)
		o.dropLocked(f, m, Thinned)
		m.free()
		return false
	})
	for f, n := range gaps {
		f.more().tail += n
	}
}

// thin judges a Block once, by its loss rate, and reports whether it is to be dropped; a survivor
// is never judged again. Of the Blocks judged on a pipe, at every point, at most the sum of their
// loss rates over 127 is dropped, and the drops are spread evenly.
func (f *Flow) thin(m *Message) bool {
	if m.Type != message.BlockType || m.End || m.Loss == 0 {
		return false
	}
	debt := int(f.debt) + int(m.Loss)
	m.Loss = 0
	if debt < message.MaxLoss {
		f.debt = uint8(debt)
		return false
	}
	f.debt = uint8(debt - message.MaxLoss)
	return true
}

// Judge judges a Block that cannot be put now, by its loss rate, as if it were put under pressure.
// It reports whether it is dropped; a survivor has no loss rate any more.
func (o *Outbox) Judge(f *Flow, m *Message) (dropped bool) {
	o.mu.Lock()
	defer o.unlock()
	if o.closed || f.closed || f.ended || !f.thin(m) {
		return false
	}
	f.more().tail++
	o.noteLocked(m, Thinned)
	return true
}

// dropLocked forgets m, which belongs to f and is in no queue. Without its Open a pipe is over; for
// a Block, the caller sees to it that the next one tells.
func (o *Outbox) dropLocked(f *Flow, m *Message, why Reason) {
	o.gone.add(m)
	o.noteLocked(m, why)
	if m.Type == message.OpenType {
		f.closed = true
		o.clearLocked(f, why)
		m.Departer.Discard(why)
	} else if m.Sender != nil {
		n := o.newsLocked()
		n.returned = append(n.returned, returned{m.Sender, len(m.Payload)})
	}
}

// news is what others have to be told, without the lock.
type news struct {
	drops    []Drop
	returned []returned
}

// newsLocked returns what has to be told, for something to be added.
func (o *Outbox) newsLocked() *news {
	if o.news == nil {
		o.news = new(news)
	}
	return o.news
}

// tell tells n.
func (o *Outbox) tell(n *news) {
	for _, r := range n.returned {
		r.to.Dropped(r.payload)
	}
	if len(n.drops) > 0 {
		o.dropped(n.drops)
	}
}

// returned is a Block that its sender has to hear of.
type returned struct {
	to      Sender
	payload int
}

// noteLocked takes down that an Open or a Block was dropped.
func (o *Outbox) noteLocked(m *Message, why Reason) {
	if o.dropped == nil || m.End || m.Type != message.OpenType && m.Type != message.BlockType {
		return
	}
	n := o.newsLocked()
	n.drops = append(n.drops, Drop{Open: m.Type == message.OpenType, Reason: why, Marker: m.Marker})
}

// clearLocked drops all that waits of f, and reports whether its Open was among it.
func (o *Outbox) clearLocked(f *Flow, why Reason) (open bool) {
	o.queue.Clear(&f.queue, func(m Message) {
		o.gone.add(&m)
		o.noteLocked(&m, why)
		o.flushes.left(&m, false)
		open = open || m.Type == message.OpenType
		m.free()
	})
	if f.rest != nil {
		f.left(f.rest.backlog)
	}
	return open
}

// skippedLocked makes m, which is about to depart, tell how many Blocks of f were dropped before
// it. A Close cannot say that; an end-of-stream before it does.
func (o *Outbox) skippedLocked(f *Flow, m *Message) {
	if f.rest != nil && (m.Type == message.BlockType || m.Type == message.CloseType) {
		m.Skipped += f.rest.skipped
		f.rest.skipped = 0
	}
	if m.Type != message.CloseType || m.Skipped == 0 || m.Abort != nil || f.ended {
		return
	}
	o.appendLocked(&message.Block{Pipe: f.id, End: true, Meta: message.Meta{Skipped: m.Skipped}})
}

// millis returns d in whole milliseconds, rounded up, as far as the wire can tell.
func millis(d time.Duration) uint32 {
	return uint32(min((d+time.Millisecond-1)/time.Millisecond, message.MaxTTL))
}
