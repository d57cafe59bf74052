package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

const (
	sink  = 10       // the function with a stream
	block = 32 << 10 // bytes in each Block of it
)

// stage is the common part of all demonstrations: a sender and a consumer with a session, and its
// measurements.
type stage struct {
	table    *table // these are fixed
	ctx      context.Context
	end      context.CancelFunc
	sender   *asterisque.Node
	consumer *asterisque.Node
	calls    caller
	workers  sync.WaitGroup // goroutines of this stage

	// the sender's end of the session in the table; these are for the goroutine that prints
	near     *asterisque.Session
	far      *asterisque.Session // the consumer's end of it
	mostHeld int                 // bytes at the consumer, in the rows so far

	sent, taken atomic.Int64 // bytes of Blocks
	// changes of state since the last row, the sender's and the consumer's
	outward, inward atomic.Int64
}

// taker consumes the Blocks of a pipe, until the call ends.
type taker func(ctx context.Context, s *stage, p *pipe.Pipe) error

// newStage connects a sender and a consumer, which offers sink, run by take, and echo.
func newStage(ctx context.Context, t *table, log *slog.Logger, take taker, sender, consumer []asterisque.Option) (*stage, error) {
	s := &stage{table: t}
	s.ctx, s.end = context.WithCancel(ctx)
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, text string) (string, error) { return text, nil })
	svc.Handle(sink, "sink", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) { return nil, take(ctx, s, p) })
	s.sender = asterisque.NewNode(append(sender, asterisque.WithLogger(log), asterisque.WithHooks(asterisque.Hooks{LimitChanged: count(asterisque.Outbound, &s.outward)}))...)
	s.consumer = asterisque.NewNode(append(consumer, asterisque.WithLogger(log), asterisque.WithHooks(asterisque.Hooks{LimitChanged: count(asterisque.Inbound, &s.inward)}),
		asterisque.WithService(svc))...)
	var err error
	s.near, s.far, err = s.connect()
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// connect returns both ends of a session between the two nodes.
func (s *stage) connect() (near, far *asterisque.Session, err error) {
	ln, err := wire.Listen(s.ctx, "tcp://127.0.0.1:0", wire.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	var accepted sync.WaitGroup
	var farErr error
	accepted.Go(func() {
		var w wire.Wire
		if w, farErr = ln.Accept(); farErr == nil {
			far, farErr = s.consumer.Accept(s.ctx, w)
		}
	})
	near, err = s.sender.Dial(s.ctx, ln.URL())
	if err != nil {
		ln.Close()
	}
	accepted.Wait()
	if err == nil {
		err = farErr
	}
	return near, far, err
}

// close ends everything, the consumer first: a sender would wait a moment for a consumer that does
// not read its final frame.
func (s *stage) close() {
	s.end()
	s.consumer.Close()
	s.sender.Close()
	s.workers.Wait()
}

// count returns a function for [asterisque.Hooks].LimitChanged that counts changes in one
// direction.
func count(d asterisque.Direction, n *atomic.Int64) func(*asterisque.Session, asterisque.Direction, limits.State) {
	return func(_ *asterisque.Session, changed asterisque.Direction, _ limits.State) {
		if changed == d {
			n.Add(1)
		}
	}
}

// callAlong makes calls beside the other traffic, over sess.
func (s *stage) callAlong(sess *asterisque.Session) {
	s.workers.Go(func() { s.calls.run(s.ctx, sess) })
}

// flood opens the given number of pipes, and then sends Blocks into them as fast as Send accepts
// them, until the stage or the session ends. It opens all of them first: once the session is at its
// soft limit, Open blocks too.
func (s *stage) flood(pipes int) error {
	open := make([]*pipe.Pipe, pipes)
	for i := range open {
		var err error
		if open[i], err = s.near.Open(s.ctx, sink, nil); err != nil {
			return err
		}
	}
	for _, p := range open {
		s.workers.Go(func() {
			payload := make([]byte, block)
			for p.Send(s.ctx, payload) == nil {
				s.sent.Add(block)
			}
		})
	}
	return nil
}

// takeOne takes one Block of p.
func (s *stage) takeOne(ctx context.Context, p *pipe.Pipe) error {
	b, err := p.Recv(ctx)
	if err != nil {
		return err
	}
	s.taken.Add(int64(len(b.Payload)))
	b.Release()
	return nil
}

// takeSlowly takes a Block of p at each tick, until the call ends: the ticker makes this consumer
// slow. Several pipes may share it, and its pace.
func (s *stage) takeSlowly(ctx context.Context, p *pipe.Pipe, tick <-chan time.Time) error {
	for {
		select {
		case <-tick:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.takeOne(ctx, p); err != nil {
			return err
		}
	}
}

// patience bounds waits for events that should occur soon.
const patience = 10 * time.Second

// watch prints a row each beat: at least n of them, and until one is printed after the awaited
// event.
func (s *stage) watch(n int, awaited string, come func() bool) error {
	tick := time.NewTicker(s.table.beat)
	defer tick.Stop()
	end := time.Now().Add(time.Duration(n)*s.table.beat + patience)
	for there := false; n > 0 || !there; n-- {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
		there = come()
		s.table.print(s.look())
		if !there && time.Now().After(end) {
			return fmt.Errorf("this should have come within %v: %s", patience, awaited)
		}
	}
	return nil
}

// nothing is awaited by callers that only print rows.
func nothing() bool { return true }

// look returns the current figures.
func (s *stage) look() row {
	near, far := s.near.Stats(), s.far.Stats()
	r := row{
		sent:     s.sent.Load(),
		taken:    s.taken.Load(),
		sender:   held{near.Outbound, near.OutboundState, s.outward.Swap(0)},
		consumer: held{far.Inbound, far.InboundState, s.inward.Swap(0)},
		slowest:  "-",
		calls:    s.calls.look(),
	}
	if slow, ok := s.far.SlowestPipe(); ok {
		r.slowest = fmt.Sprintf("%d: %s", slow.Pipe, amount(int64(slow.Waiting.Bytes)))
	}
	s.mostHeld = max(s.mostHeld, far.Inbound.Bytes)
	return r
}
