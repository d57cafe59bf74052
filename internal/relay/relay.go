// Package relay lets one Wire go on in another one. What it carries are frames, whole and in order,
// so the sessions at the two ends have all that they would have over one Wire, and it knows nothing
// of what they say.
package relay

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

var (
	// errMisbehaved is how a Wire ends whose code did not return: the log says why.
	errMisbehaved = errors.New("relay: a wire panicked, or ended its goroutine")

	errStands = errors.New("relay: a side takes nothing, or takes it too slowly")
)

// Side is one of the two Wires of a relay.
type Side struct {
	wire.Wire
	Largest int // bytes of a frame that comes from it; a larger one ends the relay
}

// between is what the two directions share.
type between struct {
	log   *slog.Logger // these are fixed
	wires [2]wire.Wire

	once sync.Once
	err  error // why it has ended; fixed by once
}

// Between carries frames from each side to the other one until either ends, and then closes both. A
// side that does not read holds up the other one: no more is read from that than one frame, or a
// batch of gathered bytes. Meanwhile it is not seen that the other one ends, and so what is written
// at once may take patience, and a second for each 16 KiB.
//
// It returns nil if the Wire that has ended first was closed in good order, and otherwise why that
// has ended. Neither Wire is used any more then.
func Between(log *slog.Logger, patience time.Duration, a, b Side) error {
	r := &between{log: log, wires: [2]wire.Wire{a.Wire, b.Wire}}
	var both sync.WaitGroup
	for _, d := range []*direction{newDirection(a, b.Wire), newDirection(b, a.Wire)} {
		d.patience = patience
		d.late = time.AfterFunc(time.Hour, func() { r.end(errStands) })
		d.late.Stop()                // until something is written
		both.Go(func() { r.run(d) }) // ends when either Wire is closed
	}
	both.Wait()
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// run lets d carry, and then ends both.
func (r *between) run(d *direction) {
	why := errMisbehaved
	defer func() { r.end(why) }() // also if a Wire ends the goroutine
	guard.Run(r.log, "wire", func() { why = d.carry() })
}

// end closes both Wires because of why, of which only the first one counts.
func (r *between) end(why error) {
	r.once.Do(func() { r.err = why })
	for _, w := range r.wires {
		guard.Apart(r.log, w, func() { w.Close() })
	}
}
