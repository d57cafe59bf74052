// Package relay lets one Wire go on in another one. What it carries are frames, whole and in order,
// so the sessions at the two ends have all that they would have over one Wire, and it knows nothing
// of what they say.
package relay

import (
	"errors"
	"io"
	"log/slog"
	"sync"

	"github.com/asterisque-go/asterisque/internal/guard"
	"github.com/asterisque-go/asterisque/wire"
)

// errMisbehaved is how a Wire ends whose code did not return: the log says why.
var errMisbehaved = errors.New("relay: a wire panicked")

// Side is one of the two Wires of a relay.
type Side struct {
	wire.Wire
	Largest int // bytes of a frame that comes from it; a larger one ends the relay
}

// Between carries frames from each side to the other one until either ends, and then closes both. A
// side that does not read holds up the other one: no more is read from that than one frame, or a
// batch of gathered bytes.
//
// It returns nil if the Wire that has ended first was closed in good order, and otherwise why that
// has ended. Neither Wire is used any more then.
func Between(log *slog.Logger, a, b Side) (err error) {
	var once sync.Once
	var both sync.WaitGroup
	for _, d := range []*direction{newDirection(a, b.Wire), newDirection(b, a.Wire)} {
		both.Go(func() { // ends when either Wire is closed
			why := errMisbehaved
			guard.Run(log, "wire", func() { why = d.carry() })
			once.Do(func() { err = why })
			for _, w := range []wire.Wire{a.Wire, b.Wire} {
				guard.Apart(log, w, func() { w.Close() })
			}
		})
	}
	both.Wait()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
