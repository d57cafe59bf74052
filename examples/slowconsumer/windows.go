package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
)

// window is the largest one, and the default of the library.
const window = 512 << 10

// pace is how long the slow consumer of this part takes for a Block.
const pace = 10 * time.Millisecond

// showWindows runs a fast sender with a slow consumer. The window of their pipe blocks only that
// sender.
func showWindows(ctx context.Context, t *table, log *slog.Logger) error {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	slowly := func(ctx context.Context, s *stage, p *pipe.Pipe) error { return s.takeSlowly(ctx, p, tick.C) }
	s, err := newStage(ctx, t, log, slowly, nil, []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Window: window})})
	if err != nil {
		return err
	}
	defer s.close()
	t.title(`1. WINDOWS. At first there are calls only, one each millisecond. Then a sender sends as fast as Send lets it, to a
consumer that takes a Block of %s each %v.`, amount(block), pace)
	t.head()
	s.callAlong(s.near)
	if err := s.watch(2, "", nothing); err != nil {
		return err
	}
	if err := s.flood(1); err != nil {
		return err
	}
	if err := s.watch(5, "Blocks that are taken", func() bool { return s.taken.Load() > 0 }); err != nil {
		return err
	}
	if s.mostHeld > window+2*block {
		return fmt.Errorf("the consumer held %d bytes, in spite of a window of %d", s.mostHeld, window)
	}
	t.say("Send waited, for the window of its own pipe. The consumer never held more than %s. The calls went on.", amount(int64(s.mostHeld)))
	return nil
}
