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

// stackShrinker keeps the stack of an idle session small. The processing of frames needs a larger
// stack than waiting for the next one, and a stack does not shrink while its goroutine waits. So
// after a while without frames, the reader is woken and replaced by a new goroutine.
type stackShrinker struct {
	seen  uint32        // frames as of the last look, the low bits, as below; belongs to look
	fresh atomic.Uint32 // frames when the goroutine of the reader began
	wake  atomic.Uint32 // a wake state; busy during a change of the Wire's deadline
}

const (
	noWake   = iota
	waking   // the deadline has expired, and the reader has not noticed yet
	busyWake // for the moment of a system call that does not block
)

// take sets r.wake to busy, and returns its former value.
func (r *stackShrinker) take() (was uint32) {
	for {
		if was = r.wake.Load(); was != busyWake && r.wake.CompareAndSwap(was, busyWake) {
			return was
		}
		runtime.Gosched()
	}
}

// wakeableWire is a Wire with a reader that can be woken and can then resume.
type wakeableWire interface{ SetReadDeadline(t time.Time) error }

// look is called from time to time with the number of frames that have arrived over w. It wakes the
// reader if the reader has processed frames and none has arrived since the last look.
func (r *stackShrinker) look(w wire.Wire, frames uint32) {
	quiet := frames == r.seen && frames != r.fresh.Load()
	r.seen = frames
	if s, ok := w.(wakeableWire); ok && quiet && guard.IsSocket(w) {
		r.take()
		s.SetReadDeadline(time.Unix(1, 0)) // fails only for a Wire that has ended
		r.wake.Store(waking)
	}
}

// woken reports whether a read of w has failed with err because look has woken the reader.
//
//go:noinline
func (r *stackShrinker) woken(w wire.Wire, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	woken := r.take() == waking
	if woken {
		w.(wakeableWire).SetReadDeadline(time.Time{}) // as above
	}
	r.wake.Store(noWake)
	return woken
}
