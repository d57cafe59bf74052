package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// The duration of a call, and the number of concurrent calls, define the capacity of the server.
const (
	workers = 8
	takes   = 2 * time.Millisecond
	nominal = workers * float64(time.Second) / float64(takes) // calls a second
)

// clients is the number of sessions with load.
const clients = 4

// maxWaiting is the length of the queue of each session in a server that refuses further calls:
// enough to keep the workers busy until the next calls arrive.
const maxWaiting = 32

// work is the called function. It takes its time without using the processor, as one does that
// waits for a disk or a database.
var work = asterisque.Func[int, int](10, "work")

// reaction is one reaction to more calls than can be run.
type reaction struct {
	name   string
	server []asterisque.Option
	retry  *asterisque.Retry // nil: a refused call is not retried
}

func reactions() []reaction {
	refusal := []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Waiting: maxWaiting})}
	return []reaction{
		{name: "back-pressure"}, // the default: windows make the callers wait
		{name: "refusal", server: refusal},
		{name: "refusal, retry", server: refusal, retry: &asterisque.Retry{
			// for all callers together
			Attempts: 3, First: 10 * time.Millisecond, Most: 100 * time.Millisecond, Budget: asterisque.NewRetryBudget(0.1, 100),
		}},
	}
}

// call makes a call with this reaction.
func (r *reaction) call(ctx context.Context, s *asterisque.Session, opts ...asterisque.CallOption) error {
	once := func(ctx context.Context) error {
		_, err := work.Call(ctx, s, 1, opts...)
		return err
	}
	if r.retry == nil {
		return once(ctx)
	}
	return r.retry.Do(ctx, once)
}

// stage is a server, and its clients.
type stage struct {
	server   *asterisque.Node
	client   *asterisque.Node
	sessions []*asterisque.Session // of the client
	serving  sync.WaitGroup
}

// newStage connects the clients with a server that listens at url and has reaction r.
func newStage(ctx context.Context, url string, r *reaction) (*stage, error) {
	svc := asterisque.NewService()
	work.Handle(svc, func(ctx context.Context, n int) (int, error) {
		done := time.NewTimer(takes)
		defer done.Stop()
		select {
		case <-done.C:
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	s := &stage{client: asterisque.NewNode()}
	s.server = asterisque.NewNode(append(r.server, asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Node: workers}))...)
	ln, err := wire.Listen(ctx, url, wire.Options{})
	if err != nil {
		return nil, err
	}
	s.serving.Go(func() { s.server.Serve(ctx, ln) }) // ends with the server
	for range clients {
		sess, err := s.client.Dial(ctx, ln.URL())
		if err != nil {
			s.close()
			return nil, fmt.Errorf("connecting: %w", err)
		}
		s.sessions = append(s.sessions, sess)
	}
	return s, nil
}

func (s *stage) close() {
	s.client.Close()
	s.server.Close()
	s.serving.Wait()
}
