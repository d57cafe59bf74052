package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque"
)

// goodbye is the time limit for running calls when a side shuts down.
const goodbye = 10 * time.Second

// newService returns the service of both sides: all of the contract.
func newService() *asterisque.Service {
	svc, ev := asterisque.NewService(), newEvents()
	echo.Handle(svc, func(_ context.Context, text string) (string, error) { return text, nil })
	mirror.Handle(svc, func(_ context.Context, o order) (order, error) { return o, nil })
	nest.Handle(svc, serveNest)
	beside.Handle(svc, serveBeside)
	leave.Handle(svc, serveLeave)
	inflate.Handle(svc, func(_ context.Context, n string) (string, error) {
		bytes, err := strconv.Atoi(n)
		return strings.Repeat("x", max(bytes, 0)), err
	})
	handleStreams(svc, ev)
	handleEvents(svc, ev)
	handleErrors(svc)
	handleFixture(svc, ev)
	h := asterisque.NewHealth()
	falter.Handle(svc, func(_ context.Context, part string) (string, error) {
		return part, h.Set(part, asterisque.HealthNotServing)
	})
	svc.Health(h)
	svc.Describe()
	return svc
}

// serveNest calls its caller back within the call, so that it runs there although all workers of
// the other side may wait for this one.
func serveNest(ctx context.Context, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	inner, err := nest.Call(ctx, asterisque.SessionOf(ctx), text[1:])
	return inner + text[:1], err
}

// serveBeside returns metadata of its call. A call back has its own metadata, which is empty.
func serveBeside(ctx context.Context, key string) (string, error) {
	if back, ok := strings.CutPrefix(key, "<"); ok {
		return beside.Call(ctx, asterisque.SessionOf(ctx), back)
	}
	switch v := asterisque.MetadataOf(ctx)[strings.TrimRight(key, " ")].(type) {
	case string:
		return "text " + v, nil
	case []byte:
		return fmt.Sprintf("bytes %x", v), nil
	}
	return "nothing", nil
}

// serveLeave ends the session after its answer. Shutdown has a time limit, which ends the
// goroutine.
func serveLeave(ctx context.Context, text string) (string, error) {
	sess := asterisque.SessionOf(ctx)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	go func() {
		defer cancel()
		sess.Shutdown(ctx) // the session has the same error as the result
	}()
	return text, nil
}

func handleStreams(svc *asterisque.Service, ev *events) {
	sum.Handle(svc, func(ctx context.Context, _ string, p *asterisque.Pipe[struct{}, int64]) (total int64, err error) {
		for n, err := range p.All(ctx) {
			if err != nil {
				return 0, err
			}
			total += n
		}
		return total, nil
	})
	count.Handle(svc, func(ctx context.Context, n int, p *asterisque.Pipe[int, struct{}]) (int, error) {
		for i := range n {
			if err := p.Send(ctx, i+1); err != nil {
				return 0, err
			}
		}
		return n, nil
	})
	chat.Handle(svc, func(ctx context.Context, farewell string, p *asterisque.Pipe[string, string]) (string, error) {
		for text, err := range p.All(ctx) {
			if err == nil {
				err = p.Send(ctx, text)
			}
			if err != nil {
				return "", err
			}
		}
		return farewell, nil
	})
	sip.Handle(svc, func(ctx context.Context, key string, p *asterisque.Pipe[struct{}, string]) (string, error) {
		for range 3 {
			if _, err := p.Recv(ctx); err != nil {
				return "", err
			}
		}
		p.Untyped().Stop()
		_, err := ev.wait(ctx, key+" released")
		return "stopped", err
	})
}

func handleEvents(svc *asterisque.Service, ev *events) {
	ponder.Handle(svc, func(ctx context.Context, key string) (string, error) {
		ev.happen(key+" begun", key)
		<-ctx.Done()
		why := "canceled"
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			why = "expired"
		}
		ev.happen(key+" ended", why)
		return "", ctx.Err()
	})
	begun.Handle(svc, func(ctx context.Context, key string) (string, error) { return ev.wait(ctx, key+" begun") })
	ended.Handle(svc, func(ctx context.Context, key string) (string, error) { return ev.wait(ctx, key+" ended") })
	release.Handle(svc, func(_ context.Context, key string) (string, error) {
		ev.happen(key+" released", key)
		return key, nil
	})
}

func handleErrors(svc *asterisque.Service) {
	fail.Handle(svc, func(_ context.Context, code string) (string, error) {
		n, err := strconv.ParseInt(code, 10, 32)
		if err != nil {
			return "", asterisque.ErrBadParams.Withf("%q is no code", code)
		}
		return "", &asterisque.Abort{Code: asterisque.Code(n), Message: "as asked", Detail: []byte("why")}
	})
	broken.Handle(svc, func(_ context.Context, text string) (string, error) { return "", errors.New(text) })
	crash.Handle(svc, func(_ context.Context, text string) (string, error) { panic(text) })
	odd.Handle(svc, func(context.Context, string) (any, error) { return make(chan int), nil })
}

// served returns the called functions, with their counts.
func served(svc *asterisque.Service) string {
	var parts []string
	for _, f := range svc.Stats() {
		if f.Calls > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", f.Name, f.Calls))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
