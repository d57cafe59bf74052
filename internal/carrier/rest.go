package carrier

import (
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// rest lets an idle session hold a small stack. To deal with frames takes a larger one than to wait
// for the next one, and a stack does not shrink. So where nothing has come for a while, the reader
// is woken, and lets a new goroutine wait in its place.
type rest struct {
	seen  uint32        // frames as of the last look, the low bits, as below; belongs to look
	fresh atomic.Uint32 // frames when the goroutine that reads began
	wake  atomic.Uint32 // a wake; whoever changes the deadline of the Wire with it has it busy
}

const (
	noWake   = iota
	waking   // the deadline is over, and the reader has yet to see it
	busyWake // for the moment of a system call that does not wait
)

// take makes r.wake busy, and returns what it was.
func (r *rest) take() (was uint32) {
	for {
		if was = r.wake.Load(); was != busyWake && r.wake.CompareAndSwap(was, busyWake) {
			return was
		}
		runtime.Gosched()
	}
}

// wakeable is a Wire whose reader can be woken, and then goes on where it was.
type wakeable interface{ SetReadDeadline(t time.Time) error }

// look is called from time to time, with how many frames have come over w. It wakes the reader if
// that has dealt with some, and none has come since the last look.
func (r *rest) look(w wire.Wire, frames uint32) {
	quiet := frames == r.seen && frames != r.fresh.Load()
	r.seen = frames
	if s, ok := w.(wakeable); ok && quiet && guard.IsSocket(w) {
		r.take()
		s.SetReadDeadline(time.Unix(1, 0)) // an error is that of a Wire which has ended
		r.wake.Store(waking)
	}
}

// woken reports whether reading w has failed with err because look has woken the reader.
func (r *rest) woken(w wire.Wire, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	woken := r.take() == waking
	if woken {
		w.(wakeable).SetReadDeadline(time.Time{}) // as above
	}
	r.wake.Store(noWake)
	return woken
}
