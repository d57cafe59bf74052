package wiretest

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// flood is a writer that runs until it blocks for good, or until stop is set; then it writes an
// empty frame as the last.
type flood struct {
	checkTask
	stop   atomic.Bool
	frames atomic.Int64 // how many have been written
}

const (
	floodFrame = 64 << 10 // bytes of each frame
	floodLimit = 64 << 20 // more bytes than any Wire buffers for a peer that does not read
)

// floodBy is the method with which a flood writes one frame.
type floodBy func(w wire.Wire, frame []byte) error

func byFrames(w wire.Wire, frame []byte) error { return w.WriteFrames([][]byte{frame}) }

func byBatch(w wire.Wire, frame []byte) error { return w.(wire.BatchWriter).WriteBatch(batch(frame)) }

func byVector(w wire.Wire, frame []byte) error {
	return w.(wire.VectorWriter).WriteVector(pieces(batch(frame)))
}

// startFlood floods w, and returns when the writer seems to be stuck. The peer of w must not read.
// A wrong guess makes the check weaker, never wrong.
func (r *rig) startFlood(w wire.Wire, write floodBy, what string) *flood {
	r.Helper()
	f := new(flood)
	f.checkTask = start(what, func() error {
		data := make([]byte, floodFrame)
		for n := 0; !f.stop.Load(); n++ {
			fill(data, n)
			if err := write(w, data); err != nil {
				return err
			}
			f.frames.Add(1)
		}
		return write(w, nil)
	})
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	seen, quiet := int64(0), 0
	for quiet < 5 {
		select {
		case err := <-f.done:
			r.fail("%s failed while the peer did not read: %v", what, err)
		case <-tick.C:
		}
		n := f.frames.Load()
		if quiet++; n != seen {
			seen, quiet = n, 0
		}
		if n*floodFrame > floodLimit {
			f.stop.Store(true)
			r.fail("the writer was not stopped after %d unread MiB; memory would grow without bound", floodLimit>>20)
		}
	}
	return f
}
