package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

func noFunction(ctx context.Context, c *caller) error {
	_, err := nowhere.Call(ctx, c, "hello")
	return fails(err, codec.NoFunction, true)
}

func badParams(ctx context.Context, c *caller) error {
	_, err := c.Call(ctx, echo.Number(), []byte("{}")) // no text in either JSON or CBOR
	return fails(err, codec.BadParams, true)
}

func blocksNobodyTakes(ctx context.Context, c *caller) error {
	key, err := encode(c, rand.Text())
	if err != nil {
		return err
	}
	p, err := c.Open(ctx, ponder.Number(), key)
	if err != nil {
		return err
	}
	if err := p.Send(ctx, key); err != nil {
		return err
	}
	_, err = p.Result(ctx)
	return failsAs(err, codec.BadParams)
}

func badResult(ctx context.Context, c *caller) error {
	_, err := odd.Call(ctx, c, "")
	return fails(err, codec.BadResult, false)
}

func withoutCode(ctx context.Context, c *caller) error {
	_, err := broken.Call(ctx, c, "no such order")
	var a *asterisque.Abort
	if err := fails(err, codec.Failed, false); err != nil || !errors.As(err, &a) {
		return err
	}
	return equal(a.Message, "no such order", "the message")
}

func ofTheApplication(ctx context.Context, c *caller) error {
	if c.classic {
		return failsAsAsked(ctx, c, 1000, math.MaxInt32, -1000)
	}
	return failsAsAsked(ctx, c, 1000, math.MaxInt32, -1, math.MinInt32)
}

func eachCode(ctx context.Context, c *caller) error {
	for code := codec.Failed; code <= codec.Stopped; code++ {
		if err := failsAsAsked(ctx, c, code); err != nil {
			return err
		}
	}
	return nil
}

func failsAsAsked(ctx context.Context, c *caller, codes ...asterisque.Code) error {
	for _, code := range codes {
		_, err := fail.Call(ctx, c, strconv.Itoa(int(code)))
		if err := fails(err, code, false); err != nil {
			return err
		}
		var a *asterisque.Abort
		errors.As(err, &a)
		if err := equal(a.Message, "as asked", "the message"); err != nil {
			return err
		}
		if err := equal(string(a.Detail), "why", "the detail"); err != nil && !c.classic {
			// which carries none
			return err
		}
	}
	return nil
}

func panicked(ctx context.Context, c *caller) error {
	_, err := crash.Call(ctx, c, "oh no")
	return fails(err, codec.Panicked, false)
}

// These are more than the other side accepts in one message. The classic format holds texts of up
// to 65,535 bytes, a message of it a little less.
const (
	beyond        = 5 << 20
	beyondClassic = 65_520
)

func tooLargeParameter(ctx context.Context, c *caller) error {
	bytes := beyond
	if c.classic {
		bytes = beyondClassic
	}
	_, err := echo.Call(ctx, c, strings.Repeat("x", bytes))
	if err := fails(err, codec.TooLarge, true); err != nil {
		return err
	}
	return returns("the session continues")(echo.Call(ctx, c, "the session continues"))
}

func tooLargeResult(ctx context.Context, c *caller) error {
	_, err := inflate.Call(ctx, c, strconv.Itoa(beyond))
	return fails(err, codec.TooLarge, false)
}

// overload makes calls that do not end, until the callee refuses them.
func overload(ctx context.Context, c *caller) error {
	const calls = workers + waiting + 64
	pondering, giveUp := context.WithCancel(ctx)
	var once sync.Once
	defer giveUp()
	var refused error
	err := inParallel(calls, func(int) error {
		_, err := ponder.Call(pondering, c, rand.Text())
		if errors.Is(err, asterisque.ErrOverloaded) {
			once.Do(func() { refused = err })
			giveUp()
		} else if !errors.Is(err, asterisque.ErrCanceled) {
			return fmt.Errorf("neither refused nor given up: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := fails(refused, codec.Overloaded, true); err != nil {
		return err
	}
	if d, ok := asterisque.RetryAfter(refused); !ok || d <= 0 {
		return fmt.Errorf("no advice when to try again: %w", refused)
	}
	retry := &asterisque.Retry{Attempts: 20} // cancelled calls may take a moment to end
	return retry.Do(ctx, func(ctx context.Context) error {
		return returns("the session continues")(echo.Call(ctx, c, "the session continues"))
	})
}

// encode returns a value for a call without types.
func encode(c *caller, v any) ([]byte, error) { return codecs[c.codec].Append(nil, v) }
