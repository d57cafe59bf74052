package path

import "time"

// mark is a number that the peer sends back after it has read it.
type mark struct {
	at      time.Duration // when it was sent
	written uint64        // the bytes before it
	ahead   uint64        // the bytes of these in flight at that time
	short   bool          // see Model.Departs
	wait    time.Duration // the expected wait in the queue before it

	// State when the mark was sent: the bytes known to have been read, the time readAt at which the
	// return of an earlier mark proved that, and the time then at which that mark was sent. The
	// bytes delivered from then on measure the path.
	read         uint64
	readAt, then time.Duration
}

// rate returns the bytes per second delivered between the return of the last mark before k was sent
// and the return of k, or 0 if k does not determine a rate.
func (k *mark) rate(now time.Duration) float64 {
	took := max(now-k.readAt, k.at-k.then)
	if took <= 0 || k.written <= k.read {
		return 0
	}
	return float64(k.written-k.read) / took.Seconds()
}

// marks are the marks in flight, the oldest first.
type marks struct {
	list  [16]mark
	first int
	len   int

	read uint64 // bytes known to have been read

	// The start of the present measurement, as in mark.
	from         uint64
	readAt, then time.Duration
}

func (q *marks) at(i int) *mark { return &q.list[(q.first+i)%len(q.list)] }

// push adds a mark. The caller ensures that there is room for it.
func (q *marks) push(now time.Duration, written uint64, short bool, wait time.Duration) {
	if q.len == 0 && short {
		// bytes written before may have been read long ago
		q.from, q.readAt, q.then = written, now, now
	}
	k := q.at(q.len)
	*k = mark{
		at: now, written: written, ahead: written - q.read, short: short, wait: wait,
		read: q.from, readAt: q.readAt, then: q.then,
	}
	q.len++
}

// pop removes the mark after the given bytes, which has returned, and all marks before it.
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

// before returns the written bytes of the latest mark sent before a given time.
func (q *marks) before(at time.Duration) (written uint64) {
	for i := 0; i < q.len && q.at(i).at < at; i++ {
		written = q.at(i).written
	}
	return written
}
