// Package forward connects two Wires. It forwards whole frames in order, so the sessions at the two
// ends work as over one Wire. It does not interpret the frames.
package forward

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
	// errMisbehaved ends the relay if a method of a Wire has not returned. The log contains the
	// details.
	errMisbehaved = errors.New("relay: a wire panicked, or ended its goroutine")

	errStands = errors.New("relay: a side takes nothing, or takes it too slowly")
)

// Side is one of the two Wires of a relay.
type Side struct {
	wire.Wire
	Largest int // bytes of a frame from it; a larger frame ends the relay
}

// relayState is the state shared by both directions.
type relayState struct {
	log   *slog.Logger // fixed, as wires
	wires [2]wire.Wire

	once sync.Once
	err  error // the reason of the end; fixed by once
}

// Between forwards frames from each side to the other until either side ends, and then closes both.
// A side that does not read blocks the other one: the relay reads no more from that than one frame,
// or a batch of gathered bytes. Meanwhile the relay does not notice the end of the blocked side. A
// write may therefore take at most patience, plus a second for each 16 KiB.
//
// Between returns nil if the Wire that ended first was closed gracefully, and otherwise the error
// of that Wire. Neither Wire is used afterwards.
func Between(log *slog.Logger, patience time.Duration, a, b Side) error {
	r := &relayState{log: log, wires: [2]wire.Wire{a.Wire, b.Wire}}
	var both sync.WaitGroup
	for _, d := range []*direction{newDirection(a, b.Wire), newDirection(b, a.Wire)} {
		d.patience = patience
		d.late = time.AfterFunc(time.Hour, func() { r.end(errStands) })
		d.late.Stop()                // until a write begins
		both.Go(func() { r.run(d) }) // ends when either Wire is closed
	}
	both.Wait()
	if errors.Is(r.err, io.EOF) {
		return nil
	}
	return r.err
}

// run runs d, and then ends both directions.
func (r *relayState) run(d *direction) {
	why := errMisbehaved
	defer func() { r.end(why) }() // also if a Wire ends the goroutine
	guard.Run(r.log, "wire", func() { why = d.carry() })
}

// end closes both Wires with the error why. Only the first error is kept.
func (r *relayState) end(why error) {
	r.once.Do(func() { r.err = why })
	for _, w := range r.wires {
		guard.Apart(r.log, w, func() { w.Close() })
	}
}
