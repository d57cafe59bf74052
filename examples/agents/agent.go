package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
)

// agent can only dial out. It keeps a session with each server, for calls in both directions.
type agent struct {
	name    string // these are fixed
	node    *asterisque.Node
	servers *pool.Pool
	tally   *tally

	running atomic.Int64 // commands
}

const reportEach = 100 * time.Millisecond

// newAgent returns an agent that connects to servers as long as life, until it is stopped. Its name
// is that of its certificate, which the servers use.
func newAgent(life context.Context, name string, secure *tls.Config, urls []string, t *tally, log *slog.Logger) (*agent, error) {
	a := &agent{name: name, tally: t}
	a.node = asterisque.NewNode(asterisque.WithID(name), asterisque.WithTLS(secure), asterisque.WithService(a.service()), asterisque.WithLogger(log))
	var err error
	a.servers, err = pool.New(life, a.node, pool.Fixed(urls...), pool.Config{
		Health:     []string{""}, // a server that reports bad health gets no calls
		Connection: asterisque.ReconnectConfig{First: 200 * time.Millisecond, Most: time.Second},
	})
	if err != nil {
		a.node.Close()
		return nil, err
	}
	return a, nil
}

// service has the functions that the agent offers to the servers.
func (a *agent) service() *asterisque.Service {
	svc := asterisque.NewService()
	describe.Handle(svc, func(context.Context, struct{}) (machine, error) {
		return machine{a.name, runtime.GOOS, runtime.GOARCH, runtime.Version()}, nil
	})
	execute.Handle(svc, func(ctx context.Context, c command, out *asterisque.Pipe[string, struct{}]) (lines int, err error) {
		run, ok := commands[c.Name]
		if !ok {
			return 0, asterisque.ErrBadParams.Withf("there is no command %q", c.Name)
		}
		a.running.Add(1)
		defer a.running.Add(-1)
		err = run(ctx, c, func(line string) error {
			lines++
			return out.Send(ctx, line)
		})
		return lines, err
	})
	return svc
}

// work calls the servers until it is over, and returns after the last answers.
func (a *agent) work(until context.Context) {
	var both errgroup.Group
	both.Go(func() error { a.reports(until); return nil })
	both.Go(func() error { a.followNews(until); return nil })
	both.Wait()
}

// reports calls a server repeatedly with the state of the agent: the Pool chooses the server.
func (a *agent) reports(until context.Context) {
	for rest(until, reportEach/2+rand.N(reportEach)) == nil {
		ctx, done := patience(until)
		_, err := report.Call(ctx, a.servers, state{Running: int(a.running.Load())})
		done()
		if until.Err() != nil && asterisque.Repeatable(err) {
			return // there was no server until the end
		}
		a.tally.note(&a.tally.reports, a.name+" reports", err)
	}
}

// followNews receives the news of one server, and when that drains, the news of another one.
func (a *agent) followNews(until context.Context) {
	for until.Err() == nil {
		a.tally.streams.Add(1)
		_, err := follow(until, func(ctx context.Context) (lines, error) {
			return news.Open(ctx, a.servers, struct{}{})
		}, nil)
		switch {
		case until.Err() != nil:
			return
		case err == nil || goesOn(err):
			a.tally.moved.Add(1)
		default:
			a.tally.fail(a.name+" follows the news", err)
		}
	}
}

// stop shuts the sessions down gracefully.
func (a *agent) stop(ctx context.Context) error {
	return errors.Join(a.servers.Shutdown(ctx), a.node.Close())
}
