package asterisque_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// mayBeLeft reports whether the direction may end before all Blocks are taken.
func (w *way) mayBeLeft() bool {
	return w.stopAt >= 0 || w.e.hasty || w == &w.e.up && w.e.up.stopAt >= 0 || w.e.p.ended()
}

// send sends all Blocks of the direction.
func (w *way) send(ctx context.Context, pp *pipe.Pipe) {
	defer w.sender.set("has ended", 0)
	if w.stream {
		w.write(pp)
		return
	}
	for i := range w.blocks {
		if i == w.sendless {
			w.sender.set("sleeps at", i)
			select {
			case <-ctx.Done():
			case <-pp.Done():
			}
			return
		}
		fakeclock.Sleep(w.paced)
		if !w.sendBlock(ctx, pp, w.lots.skewed(0, w.most)) {
			return
		}
	}
	w.close(pp)
}

func (w *way) close(pp *pipe.Pipe) {
	if err := pp.CloseSend(); err != nil {
		w.excuse(err)
	}
}

// sendBlock sends one Block, and returns false if no more are wanted.
func (w *way) sendBlock(ctx context.Context, pp *pipe.Pipe, size int) bool {
	n := w.next(size)
	w.sender.set("sends", n)
	err := w.try(ctx, pp, content(n, size))
	if errors.Is(err, asterisque.ErrExpired) && ctx.Err() == nil && pp.Err() == nil {
		w.e.p.tick()
		return true // canceled, and not sent
	}
	if err != nil {
		w.excuse(err)
		return false
	}
	w.accepted()
	w.e.p.tick()
	return true
}

// next records the Block that is about to be sent, and returns its number.
func (w *way) next(size int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sizes = append(w.sizes[:w.sent], size)
	return w.sent
}

func (w *way) accepted() {
	w.mu.Lock()
	w.sent++
	w.mu.Unlock()
}

func (w *way) try(ctx context.Context, pp *pipe.Pipe, b []byte) error {
	var opts []pipe.SendOption
	if w.loss > 0 {
		opts = append(opts, pipe.WithLoss(w.loss))
	}
	if w.ttl > 0 {
		opts = append(opts, pipe.WithTTL(w.ttl))
	}
	if w.posts {
		if _, err := pp.Post(b, opts...); !errors.Is(err, asterisque.ErrOverloaded) {
			return err
		}
		if _, err := pp.AwaitCredit(ctx); err != nil {
			return err
		}
	}
	if w.giveUps > 0 && w.lots.oneIn(w.giveUps) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.lots.upTo(4*time.Millisecond)+1)
		defer cancel()
	}
	return pp.Send(ctx, b, opts...)
}

// excuse fails the program if a sender has no reason to expect err.
func (w *way) excuse(err error) {
	var a *asterisque.Abort
	switch {
	case errors.Is(err, asterisque.ErrPipeClosed), errors.Is(err, asterisque.ErrStopped):
		if w.mayBeLeft() || w.e.mayBeGivenUp() {
			return
		}
	case errors.As(err, &a) && w.e.mayEndWith(a):
		return
	}
	w.e.p.fail("%v: sending failed: %v: %v", w.e, err, w)
}

// total returns the number of bytes of a stream.
func (w *way) total() int { return min(w.blocks*w.most, 1<<20) }

// write sends the direction as a stream of bytes.
func (w *way) write(pp *pipe.Pipe) {
	out := stream.NewWriter(pp)
	rest := content(0, w.total())
	for i := 0; len(rest) > 0; i++ {
		if i == w.sendless {
			w.sender.set("sleeps at", i)
			<-pp.Done()
			return
		}
		w.sender.set("writes", i)
		n := min(len(rest), 1+w.lots.IntN(1+w.most))
		if _, err := out.Write(rest[:n]); err != nil {
			w.excuse(err)
			return
		}
		w.e.p.tick()
		rest = rest[n:]
		fakeclock.Sleep(w.paced)
	}
	if err := out.Close(); err != nil {
		w.excuse(err)
	}
}

// read receives the direction as a stream of bytes.
func (w *way) read(ctx context.Context, pp *pipe.Pipe) {
	in, rest := stream.NewReader(pp), content(0, w.total())
	b := make([]byte, 1+min(w.most, 64*kib))
	for i := 0; ; i++ {
		if w.leaves(ctx, pp, i) {
			return
		}
		w.receiver.set("reads", i)
		n, err := in.Read(b)
		if n > len(rest) || !bytes.Equal(b[:n], rest[:n]) {
			w.e.p.fail("%v: %d bytes came with %d to go, or others than were sent", w.e, n, len(rest))
			return
		}
		rest = rest[n:]
		w.e.p.tick()
		switch {
		case err == io.EOF && len(rest) == 0:
			w.finished()
			return
		case err == io.EOF:
			if !w.mayBeLeft() && !w.e.mayBeGivenUp() {
				w.e.p.fail("%v: its Blocks ended %d bytes early: %v", w.e, len(rest), w)
			}
			return
		case err != nil:
			w.excuseReceiver(err)
			return
		}
	}
}

// leaves performs the receiver's action in place of taking Block n, and reports whether it takes no
// more.
func (w *way) leaves(ctx context.Context, pp *pipe.Pipe, n int) bool {
	switch n {
	case w.sleepAt:
		w.receiver.set("sleeps at", n)
		select {
		case <-ctx.Done():
		case <-pp.Done():
		}
		return true
	case w.stopAt:
		pp.Stop()
		return true
	case w.pauseAt:
		pp.StopReading()
		time.AfterFunc(5*time.Millisecond, pp.StartReading)
	}
	fakeclock.Sleep(w.slow)
	return false
}

// receive takes all Blocks of the direction.
func (w *way) receive(ctx context.Context, pp *pipe.Pipe) {
	defer w.receiver.set("has ended", 0)
	if w.stream {
		w.read(ctx, pp)
		return
	}
	seq := 0
	for n := 0; ; n++ {
		if w.leaves(ctx, pp, n) {
			return
		}
		w.receiver.set("receives", n)
		b, err := w.recv(ctx, pp)
		if err == nil && w.loses(aBlock) {
			b.Release()
			b, err = w.recv(ctx, pp)
		}
		if err == nil && w.loses(theRest) {
			b.Release()
			return
		}
		if err == io.EOF {
			w.judgeEnd(seq + int(pp.Skipped()))
			return
		}
		if err != nil {
			w.excuseReceiver(err)
			return
		}
		seq += int(b.Skipped)
		w.judgeBlock(seq, b.Payload)
		seq++
		size := len(b.Payload)
		b.Release()
		w.e.p.tick()
		if down := &w.e.down; w == &w.e.up && down.echo && !down.sendBlock(ctx, pp, min(size, w.e.p.sides[w.e.from].plan.Largest)) {
			down.echo = false
		}
	}
}

// recv receives a Block, with short deadlines as often as drawn.
func (w *way) recv(ctx context.Context, pp *pipe.Pipe) (pipe.Block, error) {
	for ; w.hurries < w.hurried; w.hurries++ {
		short, cancel := context.WithTimeout(ctx, time.Duration(w.hurried-w.hurries)*200*time.Microsecond)
		b, err := pp.Recv(short)
		cancel()
		if !errors.Is(err, asterisque.ErrExpired) || ctx.Err() != nil || pp.Err() != nil {
			return b, err
		}
	}
	return pp.Recv(ctx)
}

// judgeBlock fails the program unless a Block is the one that was sent as number seq.
func (w *way) judgeBlock(seq int, payload []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seq >= len(w.sizes) || !bytes.Equal(payload, content(seq, w.sizes[seq])) {
		w.e.p.fail("%v: a Block of %d bytes came as number %d of %d, and another one was sent", w.e, len(payload), seq, len(w.sizes))
	}
}

func (w *way) String() string {
	name := "down"
	if w == &w.e.up {
		name = "up"
	}
	return fmt.Sprintf("%s, %d Blocks of at most %d, echo %v, stream %v, stop %d, pause %d, sleep %d and %d, hurried %d, giving up %d, posts %v, loss %d, TTL %v, sender %v, receiver %v, callee %v, late %v, up %d %d",
		name, w.blocks, w.most, w.echo, w.stream, w.stopAt, w.pauseAt, w.sleepAt, w.sendless, w.hurried, w.giveUps, w.posts, w.loss, w.ttl, &w.sender, &w.receiver, &w.e.callee, w.e.late, w.e.up.blocks, w.e.up.stopAt)
}

// judgeEnd is called when the last of n Blocks has been taken.
func (w *way) judgeEnd(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n != w.sent && !w.mayBeLeft() && !w.e.mayBeGivenUp() {
		w.e.p.fail("%v: of %d Blocks %d have come, or were reported as dropped: %v", w.e, w.sent, n, w)
	}
	w.ended = true
}

func (w *way) finished() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
}

// excuseReceiver fails the program if a receiver has no reason to expect err.
func (w *way) excuseReceiver(err error) {
	var a *asterisque.Abort
	if !errors.As(err, &a) || !w.e.mayEndWith(a) {
		w.e.p.fail("%v: receiving failed: %v: %v", w.e, err, w)
	}
}
