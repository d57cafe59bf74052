package codec

import (
	"errors"
	"math"
	"time"

	"github.com/asterisque-go/asterisque/internal/cborhead"
)

// OverloadedFor returns ErrOverloaded with the advice to retry after d. The advice is sent as the
// Detail, one CBOR unsigned integer: whole milliseconds, rounded up.
func OverloadedFor(d time.Duration, message string) *Abort {
	return &Abort{Code: Overloaded, Message: message, Detail: cborhead.AppendUint(nil, millis(d))}
}

// millis rounds up, so that a short time does not become none.
func millis(d time.Duration) uint64 {
	ms := d.Milliseconds()
	if d%time.Millisecond > 0 {
		ms++
	}
	return uint64(min(max(ms, 0), math.MaxInt32))
}

// mostRetryAfter bounds the result of RetryAfter: a peer must not be able to suspend a caller for
// arbitrary times.
const mostRetryAfter = time.Hour

// RetryAfter returns the advised wait before the call that failed with err is retried, if the
// overloaded side sent one; the maximum is an hour, regardless of the advice. ok is false for every
// other error.
func RetryAfter(err error) (d time.Duration, ok bool) {
	var a *Abort
	if !errors.As(err, &a) || a == nil || a.Code != Overloaded || len(a.Detail) == 0 {
		return 0, false
	}
	r := cborhead.Reader{Data: a.Detail}
	d = time.Duration(r.Uint("retry after", math.MaxInt32)) * time.Millisecond
	return min(d, mostRetryAfter), r.End() == nil
}
