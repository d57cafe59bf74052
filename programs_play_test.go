package asterisque_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pipe"
)

// doing is the present action of one end of a call.
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

// transit is the progress of one direction of Blocks.
type transit struct {
	sender, receiver doing

	mu sync.Mutex
	// guarded by mu, as all below; of the Blocks that were sent, and of one that is being sent
	sizes []int
	sent  int  // accepted by Send
	ended bool // by CloseSend
}

// matter is the content of all messages: the sender and the receiver know it.
var matter = sync.OnceValue(func() []byte {
	b := make([]byte, 4<<20+4*kib)
	rand.NewChaCha8([32]byte{7}).Read(b)
	return b
})

// content returns the content of a message.
func content(n, size int) []byte { return matter()[n%1021:][:size:size] }

// header is the length of the head of parameters.
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
		svc.Handle(calledLimited+level, "limited", p.serve, asterisque.WithConcurrency(p.sides[of].gate))
		svc.Handle(calledBoth+level, "keyed and limited", p.serve, key, gate)
	}
	return svc
}

// find returns the call that has these parameters, and records that it runs.
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

// answer is the handler of the functions without further actions.
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

// serve is the handler of the other functions.
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
	fakeclock.Sleep(e.stubborn)
	p.tick()
	return content(int(e.number)+1, e.result), ctx.Err()
}

// callBack makes the nested calls.
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

// run makes the call, and returns when it has ended for this side.
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
		fakeclock.Sleep(e.late)
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
	pp.Abort(nil) // releases Blocks that were not taken
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
	case e.p.ending == drains && e.p.cuts == 0 && !asterisque.Repeatable(err) && !e.hasRun() && !e.mayBeGivenUp():
		e.p.fail("%v has not run, and is not said so: %v", e, err)
	}
}

func (e *errand) hasRun() bool {
	e.p.mu.Lock()
	defer e.p.mu.Unlock()
	return e.ran > 0
}

// mayEndWith reports whether the application has requested, or has to expect, a.
func (e *errand) mayEndWith(a *asterisque.Abort) bool {
	switch a.Code {
	case codec.Unavailable, codec.SessionClosed:
		return e.p.mayEnd() // settle checks the session
	case codec.NoFunction:
		return e.function == calledUnknown
	case codec.Canceled, codec.Expired:
		return e.mayBeGivenUp() || e.p.mayEnd() && e.within != nil
	case codec.Overloaded:
		return e.within != nil || e.p.sides[1-e.from].maxWaiting > 0
	case codec.TooLarge:
		plan := &e.p.sides[1-e.from].plan
		return e.within != nil && max(e.params, header)+plan.Overhead+plan.Window > plan.Nested
	case codec.Stalled:
		return e.up.hurried > 0 || e.down.hurried > 0 || e.p.resizes > 0
	}
	return false
}

// mayEnd reports whether a session may end before its calls.
func (p *program) mayEnd() bool { return p.ending != unending || p.resizes > 0 }

// ended reports whether a session has ended.
func (p *program) ended() bool { return p.sessions[0].Err() != nil || p.sessions[1].Err() != nil }

// mayBeGivenUp reports whether the caller may cancel the call.
func (e *errand) mayBeGivenUp() bool {
	for ; e != nil; e = e.within {
		if e.sleepy || e.giveUp > 0 || e.deadline > 0 || e.ttl > 0 || e.up.hurried > 0 || e.down.hurried > 0 {
			return true
		}
	}
	return false
}

// judgeBlocks is called when the call has succeeded.
func (e *errand) judgeBlocks() {
	for _, w := range []*way{&e.up, &e.down} {
		w.mu.Lock()
		if e.stream && !w.ended && !w.mayBeLeft() && !e.mayBeGivenUp() {
			e.p.fail("%v: its Blocks ended early", e)
		}
		w.mu.Unlock()
	}
}
