package carrier

import (
	"errors"
	"os"
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
	wakes atomic.Bool   // it is being woken
}

// wakeable is a Wire whose reader can be woken, and then goes on where it was.
type wakeable interface{ SetReadDeadline(t time.Time) error }

// look is called from time to time, with how many frames have come over w. It wakes the reader if
// that has dealt with some, and none has come since the last look.
func (r *rest) look(w wire.Wire, frames uint32) {
	quiet := frames == r.seen && frames != r.fresh.Load()
	r.seen = frames
	if s, ok := w.(wakeable); ok && quiet && guard.IsSocket(w) {
		r.wakes.Store(true)
		s.SetReadDeadline(time.Unix(1, 0)) // an error is that of a Wire which has ended
	}
}

// woken reports whether reading w has failed with err because look has woken the reader.
func (r *rest) woken(w wire.Wire, err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) || !r.wakes.Swap(false) {
		return false
	}
	w.(wakeable).SetReadDeadline(time.Time{}) // as above
	return true
}
