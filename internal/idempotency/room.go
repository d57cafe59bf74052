package idempotency

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/fifo"
	"github.com/asterisque-go/asterisque/limits"
)

// room bounds the memory for durable calls, of each owner and in all. It is guarded by the
// lock of the Answers.
type room struct {
	most     limits.Amount // bound; 0: none; fixed, as the next
	share    float64       // of most, for each owner
	held     limits.Amount
	answered fifo.Queue[*Answer] // in the order of the answers
}

// refusal returns an error if one more call of an owner, with size bytes, exceeds a bound, or nil.
func (r *room) refusal(own *share, size int, now time.Time) *codec.Abort {
	more := limits.Amount{Messages: 1, Bytes: size}
	switch {
	case !r.fits(own.held, more, r.share):
		return codec.OverloadedFor(untilForgotten(&own.answered, now), "the durable calls of this peer fill its share of the remembered calls here: see DurableAnswers")
	case !r.fits(r.held, more, 1):
		return codec.OverloadedFor(untilForgotten(&r.answered, now), "too many durable calls are remembered here: see DurableAnswers")
	}
	return nil
}

// fits reports whether held and more together fit into a share of the bound.
func (r *room) fits(held, more limits.Amount, share float64) bool {
	return (r.most.Messages == 0 || held.Messages+more.Messages <= max(int(share*float64(r.most.Messages)), 1)) &&
		(r.most.Bytes == 0 || held.Bytes+more.Bytes <= int(share*float64(r.most.Bytes)))
}

// fitsAnswer reports whether the answer to a call of an owner fits.
func (r *room) fitsAnswer(own *share, bytes int) bool {
	more := limits.Amount{Bytes: bytes}
	return bytes == 0 || r.fits(own.held, more, r.share) && r.fits(r.held, more, 1)
}

// untilForgotten returns the time until the next answer in q expires.
func untilForgotten(q *fifo.Queue[*Answer], now time.Time) time.Duration {
	if q.Len() == 0 {
		return time.Second // all calls run, and may end at any moment
	}
	return max((*q.Peek()).until.Sub(now), dispatch.MinRetryAfter)
}

// count adds to the amounts of m's owner and of all.
func (r *room) count(m *Answer, messages, bytes int) {
	for _, held := range []*limits.Amount{&r.held, &m.share.held} {
		held.Messages += messages
		held.Bytes += bytes
	}
	m.share.tally(bytes)
}

// queue adds m, which is answered, to the order of expiry.
func (r *room) queue(m *Answer) {
	r.answered.Push(m)
	m.share.answered.Push(m)
}

// lapsed removes and returns an expired answer, or nil.
func (r *room) lapsed(now time.Time) *Answer {
	if r.answered.Len() == 0 || now.Before((*r.answered.Peek()).until) {
		return nil
	}
	m := r.answered.Pop()
	m.share.answered.Pop() // the same answer: both queues are in one order
	return m
}
