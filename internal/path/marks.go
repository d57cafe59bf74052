package path

import "time"

// mark is a number on its way to the peer and back.
type mark struct {
	at      time.Duration // when it left
	written uint64        // the bytes before it
	ahead   uint64        // and how many of them were in flight
	short   bool          // see Model.Departs
	wait    time.Duration // for how long it should stand in the queue that was made before it

	// What was known to have been read when it left, and when that came to be known; and when the
	// mark left that has told it. What is delivered from then on is what the path delivers.
	read         uint64
	readAt, then time.Duration
}

// rate returns how many bytes a second were delivered between the return of the mark that was known
// when k left, and that of k: 0 if it does not tell.
func (k *mark) rate(now time.Duration) float64 {
	took := max(now-k.readAt, k.at-k.then)
	if took <= 0 || k.written <= k.read {
		return 0
	}
	return float64(k.written-k.read) / took.Seconds()
}

// marks are those on their way, the oldest first.
type marks struct {
	list  [16]mark
	first int
	len   int

	read uint64 // bytes that are known to have been read

	// From here on what is delivered is measured: as in mark.
	from         uint64
	readAt, then time.Duration
}

func (q *marks) at(i int) *mark { return &q.list[(q.first+i)%len(q.list)] }

// push adds a mark. There is room for it.
func (q *marks) push(now time.Duration, written uint64, short bool, wait time.Duration) {
	if q.len == 0 && short {
		// what was written before may have been read long ago
		q.from, q.readAt, q.then = written, now, now
	}
	k := q.at(q.len)
	*k = mark{
		at: now, written: written, ahead: written - q.read, short: short, wait: wait,
		read: q.from, readAt: q.readAt, then: q.then,
	}
	q.len++
}

// pop removes the mark behind so many bytes, which has come back, and those before it.
func (q *marks) pop(now time.Duration, written uint64) (k mark, ok bool) {
	for i := range q.len {
		if k = *q.at(i); k.written != written {
			continue
		}
		q.first, q.len = (q.first+i+1)%len(q.list), q.len-i-1
		q.read, q.from, q.readAt, q.then = written, written, now, k.at
		return k, true
	}
	return mark{}, false
}

// before returns behind how many bytes the latest mark left that did so before a moment.
func (q *marks) before(at time.Duration) (written uint64) {
	for i := 0; i < q.len && q.at(i).at < at; i++ {
		written = q.at(i).written
	}
	return written
}
