package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// Blocks posted between two lines, and at once: enough to fill the connection and all limits within
// a few lines.
const (
	postings        = 50
	blocksOfPosting = 4
)

// showHardLimit makes a sender post without waiting. Its session is aborted, all waiting calls get
// the reason, and the other session of the same node continues.
func showHardLimit(ctx context.Context, t *table, log *slog.Logger) error {
	wakeUp, told := make(chan struct{}), make(chan error, 1)
	sleeper := func(ctx context.Context, s *stage, p *pipe.Pipe) error {
		select {
		case <-wakeUp:
		case <-ctx.Done(): // the end of the session may wake it first
		}
		var err error
		for err == nil {
			err = s.takeOne(context.WithoutCancel(ctx), p) // until the pipe returns the reason
		}
		told <- err
		return err
	}
	s, err := newStage(ctx, t, log, sleeper, []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Outbound: inBytes(2<<20, 8<<20)})}, noWindows())
	if err != nil {
		return err
	}
	defer s.close()
	t.title(`3. THE HARD LIMIT. The consumer sleeps again, and the sender posts, which never waits. Its session has a soft limit of 2 MiB,
which it does not care for, and a hard one of 8. The calls use another session of the same nodes.`)
	t.head()
	other, otherFar, err := s.connect()
	if err != nil {
		return err
	}
	s.callAlong(other)
	p, err := s.near.Open(s.ctx, sink, nil)
	if err != nil {
		return err
	}
	posted := make(chan error, 1)
	s.workers.Go(func() { posted <- s.postWithoutLooking(p) })
	if err := s.watch(4, "the hard limit", func() bool { return s.near.Err() != nil }); err != nil {
		return err
	}
	close(wakeUp)
	_, result := p.Result(s.ctx)
	if err := s.tell(<-posted, result, told); err != nil {
		return err
	}
	t.say("The other session, once the garbage collector has been around:")
	runtime.GC()
	runtime.GC() // the first run only moves the content of pools
	s.near, s.far = other, otherFar
	if err := s.watch(2, "", nothing); err != nil {
		return err
	}
	if other.Err() != nil {
		return fmt.Errorf("the other session ended too: %w", other.Err())
	}
	t.say("It continues.")
	return nil
}

// postWithoutLooking posts Blocks at an even pace, so that the table shows how they accumulate, and
// ignores the state that Post returns. It returns the error of the last Post.
func (s *stage) postWithoutLooking(p *pipe.Pipe) error {
	tick := time.NewTicker(s.table.beat / postings)
	defer tick.Stop()
	payload := make([]byte, block)
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
		if s.near.Stats().OutboundState >= limits.Soft && s.far.Stats().InboundState < limits.Soft {
			continue // on a busy machine the consumer's session gets it later
		}
		for range blocksOfPosting {
			if _, err := p.Post(payload); err != nil {
				// the ignored state has been Soft for long
				return err
			}
			s.sent.Add(block)
		}
	}
}

// tell prints the errors of all parties, and returns an error if one is wrong.
func (s *stage) tell(posted, result error, told <-chan error) error {
	s.table.say("The errors of all parties:")
	s.table.say("  the sender, by Post:        %v", posted)
	s.table.say("  the sender, by Result:      %v", result)
	if s.near.Stats().OutboundState != limits.Hard || !errors.Is(posted, asterisque.ErrHardLimit) || !errors.Is(result, asterisque.ErrHardLimit) {
		return fmt.Errorf("the sender should have got %w", asterisque.ErrHardLimit)
	}
	select {
	case err := <-told:
		s.table.say("  the consumer, by Recv:      %v", err)
		return nil
	case <-time.After(patience):
		return errors.New("the consumer got no error")
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}
