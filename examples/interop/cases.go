package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

func unary(ctx context.Context, c *caller) error {
	return returns("asterisque ∗ 🌟")(echo.Call(ctx, c, "asterisque ∗ 🌟"))
}

func values(ctx context.Context, c *caller) error {
	o := order{
		Number: 7, Negative: -123456789, Text: "zu groß ∗ 🌟", Flag: true, Ratio: 1.5, List: []string{"a", "", "c"},
		Counts: map[string]int64{"apples": 3, "pears": 4_000_000_000},
		Edges:  []int64{math.MinInt64, -1<<53 - 1, -1 << 53, 1 - 1<<53, 1<<53 - 1, 1 << 53, 1<<53 + 1, math.MaxInt64},
	}
	return returns(o)(mirror.Call(ctx, c, o))
}

func describe(ctx context.Context, c *caller) error {
	some := []uint16{asterisque.Describe.Number(), sum.Number(), nowhere.Number(), echo.Number()}
	list, err := asterisque.Describe.Call(ctx, c, asterisque.DescribeQuery{Functions: some})
	got := []string{}
	for _, f := range list {
		got = append(got, fmt.Sprint(f.Number, " ", f.Name))
	}
	return returns([]string{"1 echo", "3 sum", "65535 describe"})(got, err)
}

func streamFromCaller(ctx context.Context, c *caller) error {
	call, err := sum.Open(ctx, c, "")
	if err != nil {
		return err
	}
	for i := range blocks {
		if err := call.Send(ctx, int64(i+1)); err != nil {
			return err
		}
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	return returns(int64(blocks * (blocks + 1) / 2))(call.Result(ctx))
}

func streamFromCallee(ctx context.Context, c *caller) error {
	call, err := count.Open(ctx, c, blocks)
	if err != nil {
		return err
	}
	next := 1
	for n, err := range call.All(ctx) {
		if err == nil {
			err = equal(n, next, "the next number")
		}
		if err != nil {
			return err
		}
		next++
	}
	return errors.Join(equal(next-1, blocks, "how many came"), returns(blocks)(call.Result(ctx)))
}

func streamBothWays(ctx context.Context, c *caller) error {
	call, err := chat.Open(ctx, c, "bye")
	if err != nil {
		return err
	}
	text := func(i int) string { return strings.Repeat(fmt.Sprint(i, " "), i%500+1) }
	sent := make(chan error, 1)
	go func() { // ends with the call
		for i := range blocks {
			if err := call.Send(ctx, text(i)); err != nil {
				sent <- err
				return
			}
		}
		sent <- call.CloseSend()
	}()
	next := 0
	for got, err := range call.All(ctx) {
		if err == nil {
			err = equal(got, text(next), fmt.Sprint("Block ", next))
		}
		if err != nil {
			call.Abort(err)
			return errors.Join(err, <-sent)
		}
		next++
	}
	return errors.Join(<-sent, equal(next, blocks, "how many came back"), returns("bye")(call.Result(ctx)))
}

func streamStopped(ctx context.Context, c *caller) error {
	key := rand.Text()
	call, err := sip.Open(ctx, c, key)
	if err != nil {
		return err
	}
	for err == nil {
		err = call.Send(ctx, "more")
	}
	if err := failsAs(err, codec.Stopped); err != nil {
		return err
	}
	return errors.Join(returns(key)(release.Call(ctx, c, key)), returns("stopped")(call.Result(ctx)))
}

func callBackDeep(ctx context.Context, c *caller) error {
	return returns("zyxwvutsrqponmlkjihgfedcba")(nest.Call(ctx, c, "abcdefghijklmnopqrstuvwxyz"))
}

func callBacks(ctx context.Context, c *caller) error {
	return inParallel(callbacks, func(int) error {
		return returns(strings.Repeat("x", depth))(nest.Call(ctx, c, strings.Repeat("x", depth)))
	})
}

// metadata sends the maximum size, one byte more, and one entry more.
func metadata(ctx context.Context, c *caller) error {
	small, full := asterisque.Metadata{"tenant": "schön ∗ 🌟", "id": []byte{0, 255}, "none": ""}, asterisque.Metadata{}
	for i := range 32 {
		full[fmt.Sprintf("k%02d", i)] = strings.Repeat("v", 125)
	}
	with := func(key string, value any) asterisque.Metadata {
		m := maps.Clone(full)
		m[key] = value
		return m
	}
	ask := func(key string, m asterisque.Metadata) (string, error) {
		return beside.Call(ctx, c, key, asterisque.WithMetadata(m))
	}
	longest := "text " + strings.Repeat("v", 125)
	err := errors.Join(
		returns("text schön ∗ 🌟")(ask("tenant", small)), returns("bytes 00ff")(ask("id", small)), returns("text ")(ask("none", small)),
		returns("nothing")(ask("absent", small)), returns("nothing")(ask("tenant", nil)), returns("nothing")(ask("<tenant", small)),
		returns(longest)(ask("k31", full)),
		returns(longest)(ask("k31"+strings.Repeat(" ", 100_000), full)), // in parts
	)
	for _, m := range []asterisque.Metadata{with("k31", strings.Repeat("v", 126)), with("more", ""), {"k": 1}} {
		_, beyond := ask("k31", m)
		err = errors.Join(err, fails(beyond, codec.BadParams, true))
	}
	return err
}

func cancel(ctx context.Context, c *caller) error {
	key := rand.Text()
	pondering, giveUp := context.WithCancel(ctx)
	defer giveUp()
	gaveUp := make(chan error, 1)
	go func() { // ends with its context
		_, err := ponder.Call(pondering, c, key)
		gaveUp <- err
	}()
	if err := returns(key)(begun.Call(ctx, c, key)); err != nil {
		return err
	}
	giveUp()
	return errors.Join(fails(<-gaveUp, codec.Canceled, false), returns("canceled")(ended.Call(ctx, c, key)))
}

func deadline(ctx context.Context, c *caller) error {
	for ttl := 100 * time.Millisecond; ; ttl *= 2 {
		// long enough for the function to begin
		key := rand.Text()
		soon, cancel := context.WithTimeout(ctx, ttl)
		expired := make(chan error, 1)
		go func() { // ends with its context
			_, err := ponder.Call(soon, c, key)
			expired <- err
		}()
		_, late := begun.Call(soon, c, key)
		err := failsAs(<-expired, codec.Expired)
		cancel()
		switch {
		case err != nil:
			return err
		case late == nil:
			return returns("expired")(ended.Call(ctx, c, key))
		case ctx.Err() != nil || !errors.Is(late, asterisque.ErrExpired):
			return late
		}
	}
}

func mebibyte(ctx context.Context, c *caller) error {
	big := strings.Repeat("asterisk", 1<<17)
	return returns(big)(echo.Call(ctx, c, big))
}

func manyCalls(ctx context.Context, c *caller, calls int) error {
	var next atomic.Int64
	return inParallel(atOnce, func(int) error {
		for n := next.Add(1); n <= int64(calls); n = next.Add(1) {
			text := fmt.Sprint(n)
			if got, err := echo.Call(ctx, c, text); err != nil || got != text {
				return fmt.Errorf("call %d: %q, %w", n, got, err)
			}
		}
		return nil
	})
}

// ping waits for the Pong of a Ping, which the session sends when it is briefly idle.
func ping(ctx context.Context, c *caller) error {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for c.Path().RoundTrip == 0 {
		select {
		case <-look.C:
		case <-c.Done():
			return c.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// drain makes the other side shut the session down gracefully, while a call runs.
func drain(ctx context.Context, c *caller) error {
	call, err := chat.Open(ctx, c, "finished")
	if err != nil {
		return err
	}
	left, err := watchLeave(ctx, c)
	if err != nil {
		return err
	}
	if err := returns("soon")(leave.Call(ctx, c, "soon")); err != nil {
		return err
	}
	for err == nil {
		_, err = echo.Call(ctx, c, "still there?")
	}
	if err := fails(err, codec.Unavailable, true); err != nil {
		return err
	}
	if err := errors.Join(left(), call.Send(ctx, "what runs goes on"), call.CloseSend()); err != nil {
		return err
	}
	if err := returns("what runs goes on")(call.Recv(ctx)); err != nil {
		return err
	}
	if _, err := call.Recv(ctx); err != io.EOF {
		return fmt.Errorf("the end of the stream: %w", err)
	}
	if err := returns("finished")(call.Result(ctx)); err != nil {
		return err
	}
	select {
	case <-c.Done():
		return failsAs(c.Err(), codec.SessionClosed)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// inParallel runs f(0) to f(n-1) concurrently, and returns the first error.
func inParallel(n int, f func(int) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, n)
	for i := range n {
		wg.Go(func() { errs <- f(i) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
