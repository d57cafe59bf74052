package call

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

// outboundStream is a call from this side that carries Blocks: a pipe and its port.
type outboundStream struct {
	callTransport
	asParent *outboundParent // as a parent; nil unless a handler made it; fixed, as cost
	cost     int64           // of its Open
	whole    pipe.Pipe       // target of callTransport.pipe
	open     *openContext    // nil if nothing ends with the call; fixed when the Open departs
}

// openContext is the context of Open and the state that an outbound stream holds until its end.
type openContext struct {
	ctx   context.Context
	after func() // called at the end of the call, perhaps more than once; nil if there is nothing
}

// Open is [Session.Open].
func (x *Calls) Open(ctx context.Context, function uint16, params []byte, cfg *Options) (*pipe.Pipe, *codec.Abort) {
	if cfg.Durable {
		return nil, aborts.NeverSent(codec.ErrUnavailable.Withf("a call that carries Blocks cannot be durable: Call can"))
	}
	wait := ctx
	if cfg.TTL > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, cfg.TTL)
		defer cancel()
	}
	s, m, own, a := newStream(wait, x, function, params, cfg)
	if a != nil {
		return nil, a
	}
	if ctx.Done() != nil || own.place != nil || own.parent != nil {
		s.open = &openContext{ctx: ctx}
	}
	if own.place != nil || own.parent != nil {
		held := own // separate memory, for few calls only
		s.open.after = sync.OnceFunc(func() { x.out.giveBack(&held) })
	}
	s.watch(ctx, cfg, m.Expires)
	m.Departer = s
	if err := s.put(m, carrier.Now); err != nil {
		s.unsent()
		if over := s.pipe.Err(); over != nil { // ctx ended meanwhile
			err = aborts.NeverSent(over)
		}
		a := codec.AbortOf(err)
		s.fail(a)
		return nil, a
	}
	return s.pipe, nil
}

// newStream waits until a stream may be opened, and returns its endpoint, its Open, and its
// reservation.
func newStream(ctx context.Context, x *Calls, function uint16, params []byte, cfg *Options) (s *outboundStream, m *outbox.Message, own reservation, a *codec.Abort) {
	hold, granted, a := x.out.holdWindow(ctx, cfg.Priority, len(params))
	if a != nil {
		return nil, nil, own, a
	}
	m = &outbox.Message{Type: message.OpenType, Function: function, Payload: params}
	own, a = x.out.reserve(ctx, m, cfg, &message.Meta{Stream: true, Window: min(granted, message.MaxPipe)})
	if a != nil {
		x.out.dropHold(&hold)
		return nil, nil, own, a
	}
	s = &outboundStream{callTransport: callTransport{x: x, flow: outbox.NewFlow(cfg.Priority)}, asParent: own.parent, cost: own.cost}
	m.Meta.Initial = x.out.takeExtra()
	s.pipe = &s.whole
	(*piping.End)(s.pipe).Init(piping.Config{Function: function, Priority: cfg.Priority, Loss: cfg.Loss, Port: s, Terms: &x.out.terms, SendLimit: x.out.firstWindow(m.Meta.Initial), Granted: granted, Hold: hold})
	return s, m, own, nil
}

// unsent releases the peer's budget and the extra credit that the Open would have used: it was not
// sent.
func (s *outboundStream) unsent() {
	s.x.out.unsent(s.asParent, s.cost)
	if n := (*piping.End)(s.pipe).Initial(); n > 0 {
		s.x.out.extra.Release(int64(n))
	}
}

// watch aborts the pipe when ctx ends or the time to live has expired.
func (s *outboundStream) watch(ctx context.Context, cfg *Options, expires time.Time) {
	var cancel context.CancelFunc
	switch {
	case cfg.TTL > 0:
		ctx, cancel = context.WithDeadline(ctx, expires)
	case ctx.Done() != nil:
		ctx, cancel = context.WithCancel(ctx)
	default:
		return
	}
	if s.open == nil {
		s.open = &openContext{ctx: context.Background()}
	}
	if after := s.open.after; after != nil {
		s.open.after = func() { cancel(); after() }
	} else {
		s.open.after = cancel
	}
	// has no effect after the end of the call
	context.AfterFunc(ctx, func() { (*piping.End)(s.pipe).Abort(aborts.OfContext(ctx)) })
}

// release releases the reservation of the call. It is called at its end, perhaps more than once.
func (s *outboundStream) release() {
	if s.open != nil && s.open.after != nil {
		s.open.after()
	}
}

// Outlive implements piping.Port.
func (s *outboundStream) Outlive(f func()) (stop func() bool) {
	if s.open == nil || s.open.ctx.Done() == nil {
		return nil
	}
	return context.AfterFunc(s.open.ctx, f)
}

// Owns implements piping.Port: the context of Open may end after the call.
func (s *outboundStream) Owns(context.Context) bool { return false }

// Close implements piping.Port.
func (s *outboundStream) Close(result []byte, abort *codec.Abort) {
	if abort != nil {
		departed, unsent := s.x.Carrier.Cancel(&s.flow, givenUp(abort))
		if unsent {
			s.unsent()
		}
		if departed && unsent {
			s.x.remove(s.id())
		}
		if !departed || unsent {
			s.release()
			return // the peer does not know the pipe, or knows that the Open was canceled
		}
	}
	abort = sentWithin(abort, min(s.x.Carrier.MaxSize(), message.MaxPart))
	held := heldClose(result, abort)
	s.x.count(held)
	s.putClose(result, abort, held, carrier.Now)
	s.release()
}

// Depart implements outbox.Departer.
func (s *outboundStream) Depart(id uint64) {
	s.x.Table.depart(id, s)
	if s.x.out.extra != nil {
		s.x.watchIdle() // it may never send as much as its Open has taken
	}
}

// Discard implements outbox.Departer: the Open was not sent. The pipe ends at once, so that a
// sender gets the error. A goroutine, which ends by itself, does the rest: the caller holds a lock.
func (s *outboundStream) Discard(why outbox.Reason, begun bool) {
	if begun && !s.x.Table.remove(s.id()) {
		return // the peer has closed it
	}
	settle := (*piping.End)(s.pipe).Closing(s.x.discarded(s.unsent, why))
	go func() {
		settle()
		s.release()
	}()
}

// block implements endpoint.
func (s *outboundStream) block(b message.Block) error { return s.deliver(s.pipe, b) }

// closed implements endpoint.
func (s *outboundStream) closed(m message.Close) (err error) {
	var abort *codec.Abort
	if m.Abort != nil {
		abort = aborts.Received(m.Abort)
	}
	if s.x.Carrier.Unfinished(&s.flow) {
		abort, err = s.closedUnsent(abort)
	}
	if abort != nil {
		(*piping.End)(s.pipe).CloseArrived(nil, abort)
	} else {
		(*piping.End)(s.pipe).CloseArrived(bytes.Clone(m.Result), nil)
	}
	if s.closedBy(m.Abort) {
		s.unsent()
	}
	s.release()
	return err
}

// fail implements endpoint.
func (s *outboundStream) fail(a *codec.Abort) {
	(*piping.End)(s.pipe).CloseArrived(nil, a)
	s.release()
}

// outer implements endpoint.
func (s *outboundStream) outer() *outboundParent { return outerOf(s.asParent, s.pipe.Function()) }

// Pipe implements endpoint.
func (s *outboundStream) Pipe() *pipe.Pipe { return s.pipe }

// info implements endpoint.
func (s *outboundStream) info() Info {
	return Info{Pipe: s.id(), Function: s.pipe.Function(), Made: true, Priority: s.pipe.Priority()}
}

// queued implements endpoint.
func (s *outboundStream) queued() bool { return false }
