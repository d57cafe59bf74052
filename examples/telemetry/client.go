package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// client sends three kinds of data over one session, and counts them.
type client struct {
	sess *asterisque.Session // fixed

	sent, refused atomic.Int64 // readings: accepted by the session, and not
	tally         tally        // the server's count of them; valid after run
	// of the upload, as returned by the server and verified; valid after run
	sum     []byte
	orders  atomic.Int64 // commands
	answers answers
}

// run sends until the time is up, and then waits for calls and Blocks in flight. The first failure
// ends everything.
func (c *client) run(ctx context.Context, last time.Duration) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	until, stop := context.WithTimeout(ctx, last)
	defer stop()
	var all sync.WaitGroup
	for _, send := range []func(ctx, until context.Context) error{c.measure, c.upload, c.order} {
		all.Go(func() {
			if err := send(ctx, until); err != nil {
				fail(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// measure sends readings. A sensor cannot wait: it uses Post, which never blocks, and a refused
// reading is lost.
func (c *client) measure(ctx, until context.Context) error {
	call, err := readings.Open(ctx, c.sess, struct{}{}, asterisque.WithPriority(normal), asterisque.WithLoss(readingLoss))
	if err != nil {
		return err
	}
	tick := time.NewTicker(readingsEach)
	defer tick.Stop()
	for next(until, tick) {
		for range readingsBurst {
			if err := c.post(call.Untyped()); err != nil {
				return fmt.Errorf("sensor: %w", err)
			}
		}
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	c.tally, err = call.Result(ctx)
	return err
}

var fresh = pipe.WithTTL(readingTTL)

// post sends one reading. The pressure of the session, which Post returns, is handled by the loss
// rate.
func (c *client) post(p *pipe.Pipe) error {
	var reading [readingSize]byte
	binary.BigEndian.PutUint64(reading[:], uint64(c.sent.Load()))
	_, err := p.Post(reading[:], fresh)
	switch {
	case err == nil:
		c.sent.Add(1)
	case errors.Is(err, asterisque.ErrOverloaded):
		c.refused.Add(1)
		err = nil
	}
	return err
}

// uploadBlock is small because the link is slow: a command may have to wait for a Block in flight.
const uploadBlock = 4 << 10

// upload sends random bytes with the rest of the link's rate. Writing blocks while there is no
// room.
func (c *client) upload(ctx, until context.Context) error {
	call, err := upload.Open(ctx, c.sess, struct{}{}, asterisque.WithPriority(low))
	if err != nil {
		return err
	}
	w := stream.NewWriterSize(call.Untyped(), uploadBlock)
	source, sum, b := rand.NewChaCha8([32]byte{}), sha256.New(), make([]byte, uploadBlock)
	for until.Err() == nil {
		source.Read(b) // these two never fail
		sum.Write(b)
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("upload: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if c.sum, err = call.Result(ctx); err != nil {
		return err
	}
	if !bytes.Equal(c.sum, sum.Sum(nil)) {
		return fmt.Errorf("upload: what arrived has the SHA-256 %x, want %x", c.sum, sum.Sum(nil))
	}
	return nil
}

// order sends commands, without waiting for earlier answers, and then waits for all answers.
func (c *client) order(ctx, until context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	tick := time.NewTicker(commandEach)
	defer tick.Stop()
	var all sync.WaitGroup
	for next(until, tick) {
		n := c.orders.Add(1)
		all.Go(func() {
			if err := c.command(ctx, uint64(n)); err != nil {
				fail(fmt.Errorf("command %d: %w", n, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func (c *client) command(ctx context.Context, n uint64) error {
	order := make([]byte, commandSize)
	binary.BigEndian.PutUint64(order, n)
	begin := time.Now()
	answer, err := command.Call(ctx, c.sess, order, asterisque.WithPriority(urgent))
	if err != nil {
		return err
	}
	if !bytes.Equal(answer, order) {
		return fmt.Errorf("the answer is %x", answer)
	}
	c.answers.note(time.Since(begin))
	return nil
}

// next waits for a tick, and reports false after the last one.
func next(until context.Context, tick *time.Ticker) bool {
	select {
	case <-tick.C:
		return until.Err() == nil
	case <-until.Done():
		return false
	}
}
