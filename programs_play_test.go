package asterisque_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// doing is what one end of a call is doing.
type doing struct {
	mu   sync.Mutex
	what string // guarded by mu, as at
	at   int
}

func (d *doing) set(what string, at int) {
	d.mu.Lock()
	d.what, d.at = what, at
	d.mu.Unlock()
}

func (d *doing) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return fmt.Sprintf("%s %d", d.what, d.at)
}

// transit is what has happened to one direction of Blocks.
type transit struct {
	sender, receiver doing

	mu sync.Mutex
	// guarded by mu, as all below; of the Blocks that were sent, and of one that is being sent
	sizes []int
	sent  int  // that Send has accepted
	ended bool // in good order
}

// matter is what all messages consist of: a part of it that the sender and the receiver know.
var matter = sync.OnceValue(func() []byte {
	b := make([]byte, 4<<20+4*kib)
	rand.NewChaCha8([32]byte{7}).Read(b)
	return b
})

// content returns the content of a message.
func content(n, size int) []byte { return matter()[n%1021:][:size:size] }

// header is the length of what parameters begin with.
const header = 12

// payload returns the parameters of the call.
func (e *errand) payload() []byte {
	b := make([]byte, max(e.params, header))
	copy(b, content(int(e.number), len(b)))
	binary.BigEndian.PutUint32(b, e.number)
	binary.BigEndian.PutUint32(b[4:], e.key)
	binary.BigEndian.PutUint32(b[8:], uint32(len(b)))
	return b
}

func keyOfParams(params []byte) uint32 { return binary.BigEndian.Uint32(params[4:]) }

var (
	inlineTyped = asterisque.Func[[]byte, []byte](calledInlineTyped, "inline, typed")
	typed       = asterisque.Func[[]byte, []byte](calledTyped, "typed")
)

// service offers all functions to the peer of a side.
func (p *program) service(of int) *asterisque.Service {
	svc := asterisque.NewService()
	atOnce := func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return p.answer(params) }
	alone := func(_ context.Context, params []byte) ([]byte, error) { return p.answer(params) }
	svc.Handle(calledPlain, "plain", p.serve)
	svc.Handle(calledAsleep, "asleep", p.serve)
	svc.Handle(calledBorrowed, "borrowed", p.serve, asterisque.WithBorrowedParams())
	svc.Handle(calledInline, "inline", atOnce, asterisque.WithInline())
	inlineTyped.Handle(svc, alone, asterisque.WithInline())
	typed.Handle(svc, alone)
	key, gate := asterisque.WithKey(keyOfParams), asterisque.WithConcurrency(p.sides[of].gate)
	for level := range uint16(levels) {
		svc.Handle(calledKeyed+level, "keyed", p.serve, asterisque.WithKey(keyOfParams))
		svc.Handle(calledGated+level, "gated", p.serve, asterisque.WithConcurrency(p.sides[of].gate))
		svc.Handle(calledBoth+level, "keyed and gated", p.serve, key, gate)
	}
	return svc
}

// find returns the call that has these parameters, and notes that it runs.
func (p *program) find(params []byte) *errand {
	number := binary.BigEndian.Uint32(params)
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.errands[number]
	if e.ran++; e.ran > 1 {
		p.failLocked("call %d runs for the %dth time", number, e.ran)
	}
	return e
}

// answer is the handler of the functions that do nothing else.
func (p *program) answer(params []byte) ([]byte, error) {
	e := p.find(params)
	e.check(params)
	p.tick()
	return content(int(e.number)+1, e.result), nil
}

func (e *errand) check(params []byte) {
	if !bytes.Equal(params, e.payload()) {
		e.p.fail("call %d has got other parameters than were sent", e.number)
	}
}

// serve is the handler of the other ones.
func (p *program) serve(ctx context.Context, pp *pipe.Pipe, params []byte) ([]byte, error) {
	e := p.find(params)
	defer e.callee.set("has returned", 0)
	e.callee.set("runs", 0)
	e.check(params)
	p.tick()
	if e.kidsFirst {
		e.callBack(ctx)
	}
	var sender sync.WaitGroup
	if e.stream {
		if !e.down.echo {
			sender.Go(func() { e.down.send(ctx, pp) })
		}
		if !e.hasty {
			e.callee.set("takes Blocks", 0)
			e.up.receive(ctx, pp)
		}
	}
	if !e.kidsFirst {
		e.callBack(ctx)
	}
	e.callee.set("waits for its sender", 0)
	sender.Wait()
	if e.stream && e.down.echo {
		e.down.close(pp)
	}
	if e.asleep {
		e.callee.set("sleeps", 0)
		<-ctx.Done()
	}
	e.callee.set("is stubborn", 0)
	time.Sleep(e.stubborn) // of the bubble
	p.tick()
	return content(int(e.number)+1, e.result), ctx.Err()
}

// callBack makes the calls within this one.
func (e *errand) callBack(ctx context.Context) {
	var kids sync.WaitGroup
	for i := range e.kids {
		if ctx.Err() != nil {
			break
		}
		kid := e.p.errand(1-e.from, e, lotsOf(e.seeds[i], 1))
		kid.draw()
		e.callee.set("calls back", int(kid.number))
		if e.together {
			kids.Go(func() { kid.run(ctx) })
		} else {
			kid.run(ctx)
		}
	}
	kids.Wait()
}

// run makes the call, and returns when it is over for this side.
func (e *errand) run(ctx context.Context) {
	defer e.p.tick()
	defer e.caller.set("is over", 0)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if e.giveUp > 0 {
		defer time.AfterFunc(e.giveUp, cancel).Stop()
	}
	if e.deadline > 0 {
		ctx, cancel = context.WithTimeout(ctx, e.deadline)
		defer cancel()
	}
	opts := []asterisque.CallOption{asterisque.WithPriority(e.priority)}
	if e.ttl > 0 {
		opts = append(opts, asterisque.WithTTL(e.ttl))
	}
	if e.durable {
		opts = append(opts, asterisque.WithDurable())
	}
	e.caller.set("is made", 0)
	result, err := e.call(ctx, opts)
	e.judge(result, err)
}

func (e *errand) call(ctx context.Context, opts []asterisque.CallOption) ([]byte, error) {
	s := e.p.sessions[e.from]
	switch {
	case e.stream:
		return e.callStream(ctx, s, opts)
	case e.function == calledTyped:
		return typed.Call(ctx, e.p.caller(e), e.payload(), opts...)
	case e.function == calledInlineTyped:
		return inlineTyped.Call(ctx, e.p.caller(e), e.payload(), opts...)
	case e.durable:
		return e.p.conn.Call(ctx, e.function, e.payload(), opts...)
	}
	return s.Call(ctx, e.function, e.payload(), opts...)
}

func (e *errand) callStream(ctx context.Context, s *asterisque.Session, opts []asterisque.CallOption) ([]byte, error) {
	pp, err := s.Open(ctx, e.function, e.payload(), opts...)
	if err != nil {
		return nil, err
	}
	e.caller.set("is open", 0)
	var sender sync.WaitGroup
	sender.Go(func() { e.up.send(ctx, pp) })
	if e.late > 0 {
		e.caller.set("waits for its result first", 0)
		pp.Result(ctx)
		time.Sleep(e.late) // of the bubble
	}
	e.caller.set("takes Blocks", 0)
	e.down.receive(ctx, pp)
	e.caller.set("waits for its result", 0)
	result, err := pp.Result(ctx)
	if err != nil {
		pp.Abort(err)
	}
	e.caller.set("waits for its sender", 0)
	sender.Wait()
	pp.Abort(nil) // lets go of what nobody has taken
	return result, err
}

// judge fails the program if the call should have ended in another way.
func (e *errand) judge(result []byte, err error) {
	e.p.count(err)
	var a *asterisque.Abort
	switch {
	case err == nil && e.function == calledUnknown:
		e.p.fail("call %d of an unknown function returned", e.number)
	case err == nil && !bytes.Equal(result, content(int(e.number)+1, e.result)):
		e.p.fail("call %d has got %d bytes, and not the result of %d", e.number, len(result), e.result)
	case err == nil:
		e.judgeBlocks()
	case !errors.As(err, &a) || !e.mayEndWith(a):
		e.p.fail("%v ended with: %v", e, err)
	case asterisque.Repeatable(err) && e.hasRun():
		e.p.fail("%v ran, and is said not to have: %v", e, err)
	}
}

func (e *errand) hasRun() bool {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	return e.ran > 0
}

// mayEndWith reports whether a is what the application asked for, or has to expect.
func (e *errand) mayEndWith(a *asterisque.Abort) bool {
	switch a.Code {
	case codec.NoFunction:
		return e.function == calledUnknown
	case codec.Canceled, codec.Expired:
		return e.mayBeGivenUp()
	case codec.Overloaded:
		return e.within != nil || e.p.sides[1-e.from].maxWaiting > 0
	case codec.TooLarge:
		plan := &e.p.sides[1-e.from].plan
		return e.within != nil && max(e.params, header)+plan.Overhead+plan.Window > plan.Nested
	case codec.Stalled:
		return e.up.hurried > 0 || e.down.hurried > 0 || e.p.resizes > 0
	case codec.SessionClosed:
		return e.p.resizes > 0 // settle looks at the session
	}
	return false
}

// mayBeGivenUp reports whether the caller may end the call before it is over.
func (e *errand) mayBeGivenUp() bool {
	for ; e != nil; e = e.within {
		if e.sleepy || e.giveUp > 0 || e.deadline > 0 || e.ttl > 0 || e.up.hurried > 0 || e.down.hurried > 0 {
			return true
		}
	}
	return false
}

// judgeBlocks is called when the call has ended well.
func (e *errand) judgeBlocks() {
	for _, w := range []*way{&e.up, &e.down} {
		w.mu.Lock()
		if e.stream && !w.ended && !w.mayBeLeft() && !e.sleepy {
			e.p.fail("%v: its Blocks ended early", e)
		}
		w.mu.Unlock()
	}
}

// mayBeLeft reports whether the direction may end before all Blocks are taken.
func (w *way) mayBeLeft() bool {
	return w.stopAt >= 0 || w.e.hasty || w == &w.e.up && w.e.up.stopAt >= 0
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
		time.Sleep(w.paced) // of the bubble
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

// sendBlock sends one Block, and reports false if no more are wanted.
func (w *way) sendBlock(ctx context.Context, pp *pipe.Pipe, size int) bool {
	n := w.next(size)
	w.sender.set("sends", n)
	err := w.try(ctx, pp, content(n, size))
	if errors.Is(err, asterisque.ErrExpired) && ctx.Err() == nil && pp.Err() == nil {
		w.e.p.tick()
		return true // given up, and nothing of it was sent
	}
	if err != nil {
		w.excuse(err)
		return false
	}
	w.accepted()
	w.e.p.tick()
	return true
}

// next notes what is about to be sent, and returns its number.
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

// excuse fails the program if err is not what a sender has to expect.
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

// total returns how many bytes a stream of bytes has.
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
		time.Sleep(w.paced) // of the bubble
	}
	if err := out.Close(); err != nil {
		w.excuse(err)
	}
}

// read takes it.
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

// leaves does what the receiver does instead of taking Block n, and reports whether it takes no
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
		pp.Pause()
		time.AfterFunc(5*time.Millisecond, pp.Unpause)
	}
	time.Sleep(w.slow) // of the bubble
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
		if down := &w.e.down; down.echo && w == &w.e.up && !down.sendBlock(ctx, pp, min(size, w.e.p.sides[w.e.from].plan.Largest)) {
			down.echo = false
		}
	}
}

// recv receives a Block, in a hurry as often as that is drawn.
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

// judgeBlock fails the program if a Block is not the one that was sent as number seq.
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

// excuseReceiver fails the program if err is not what a receiver has to expect.
func (w *way) excuseReceiver(err error) {
	var a *asterisque.Abort
	if !errors.As(err, &a) || !w.e.mayEndWith(a) {
		w.e.p.fail("%v: receiving failed: %v: %v", w.e, err, w)
	}
}
