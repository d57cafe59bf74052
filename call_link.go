package asterisque

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

// link is the endpoint of a pipe that carries Blocks: a pipe and its port.
type link struct {
	port
	made  *outer    // of its reservation; fixed, as cost
	cost  int64     // of its Open
	whole pipe.Pipe // what port.pipe points to
	after func()    // is called, perhaps more than once, when the call is over; may be nil
}

// open is [Session.Open]. name is that of the function, if it is known.
func (x *exchange) open(ctx context.Context, function uint16, name string, params []byte, cfg *callConfig) (*pipe.Pipe, error) {
	if cfg.durable {
		return nil, neverSent(codec.ErrUnavailable.Withf("a call that carries Blocks cannot be durable: Call can"))
	}
	done := func(error) {}
	if x.trace != nil {
		own := *cfg
		own.trace, done = x.trace(ctx, function, name)
		cfg = &own
	}
	wait := ctx
	if cfg.ttl > 0 {
		var cancel context.CancelFunc
		wait, cancel = context.WithTimeout(ctx, cfg.ttl)
		defer cancel()
	}
	l, m, own, a := x.newLink(wait, function, params, cfg)
	if a != nil {
		done(a)
		return nil, a
	}
	if own.window != nil || own.outer != nil || x.trace != nil {
		held := own // in memory of its own, which others need not have
		l.after = sync.OnceFunc(func() {
			x.giveBack(&held)
			if x.trace != nil {
				// not on the reader, which the application would hold up; done ends it
				go done(l.pipe.Err())
			}
		})
	}
	l.watch(ctx, cfg, m.Expires)
	m.Departer = l
	if err := l.put(m, carrier.Now); err != nil {
		x.unsent(l.made, l.cost)
		if over := l.pipe.Err(); over != nil { // ctx ended meanwhile
			err = neverSent(over)
		}
		l.fail(codec.AbortOf(err))
		return nil, err
	}
	return l.pipe, nil
}

// newLink returns the endpoint of a stream, as soon as that may be opened, its Open, and what it
// holds until its end.
func (x *exchange) newLink(ctx context.Context, function uint16, params []byte, cfg *callConfig) (l *link, m *outbox.Message, own reservation, a *Abort) {
	hold, granted, a := x.holdWindow(ctx, int8(cfg.priority))
	if a != nil {
		return nil, nil, own, a
	}
	m = &outbox.Message{Type: message.OpenType, Function: function, Payload: params}
	own, a = x.outgoing.reserve(ctx, m, cfg, &message.Meta{Stream: true, Window: min(granted, message.MaxPipe)})
	if a != nil {
		x.dropHold(&hold)
		return nil, nil, own, a
	}
	l = &link{port: port{x: x, flow: outbox.NewFlow(cfg.priority)}, made: own.outer, cost: own.cost}
	l.pipe = &l.whole
	(*piping.End)(l.pipe).Init(piping.Config{Function: function, Priority: cfg.priority, Loss: cfg.loss, Port: l, Terms: &x.terms, SendLimit: x.firstWindow(), Granted: granted, Hold: hold})
	return l, m, own, nil
}

// watch aborts the pipe when ctx ends or the time to live has passed.
func (l *link) watch(ctx context.Context, cfg *callConfig, expires time.Time) {
	var cancel context.CancelFunc
	switch {
	case cfg.ttl > 0:
		ctx, cancel = context.WithDeadline(ctx, expires)
	case ctx.Done() != nil:
		ctx, cancel = context.WithCancel(ctx)
	default:
		return
	}
	if after := l.after; after != nil {
		l.after = func() { cancel(); after() }
	} else {
		l.after = cancel
	}
	// after the end of the call it does nothing
	context.AfterFunc(ctx, func() { (*piping.End)(l.pipe).Abort(contextError(ctx)) })
}

// release gives back what the call held. It is called at its end, perhaps more than once.
func (l *link) release() {
	if l.after != nil {
		l.after()
	}
}

// Close implements piping.Port.
func (l *link) Close(result []byte, abort *codec.Abort) {
	if abort != nil {
		departed, unsent := l.x.carrier.Cancel(&l.flow, givenUp(abort))
		if unsent {
			l.x.unsent(l.made, l.cost)
		}
		if !departed {
			l.release()
			return // the peer will never hear of the pipe
		}
	}
	held := heldClose(heldStream, result, abort)
	l.x.count(held)
	l.putClose(result, abort, held, carrier.Now)
	l.release()
}

// Depart implements outbox.Departer.
func (l *link) Depart(id uint64) {
	l.x.table.depart(id, l)
}

// Discard implements outbox.Departer: the Open was not sent. The pipe ends at once, so that who
// sends learns why; what follows from that is for a goroutine, because the caller holds a lock. It
// ends by itself.
func (l *link) Discard(why outbox.Reason) {
	settle := (*piping.End)(l.pipe).Closing(l.x.discarded(l.made, l.cost, why))
	go func() {
		settle()
		l.release()
	}()
}

// block implements endpoint.
func (l *link) block(b message.Block) error { return l.deliver(l.pipe, b) }

// closed implements endpoint.
func (l *link) closed(m message.Close) {
	if m.Abort != nil {
		(*piping.End)(l.pipe).CloseArrived(nil, remote(m.Abort))
	} else {
		(*piping.End)(l.pipe).CloseArrived(bytes.Clone(m.Result), nil)
	}
	l.closedBy(m.Abort)
	l.release()
}

// fail implements endpoint.
func (l *link) fail(a *Abort) {
	(*piping.End)(l.pipe).CloseArrived(nil, a)
	l.release()
}

// outer implements endpoint.
func (l *link) outer() *outer { return outerOf(l.made, l.pipe.Function()) }

// untyped implements endpoint.
func (l *link) untyped() *pipe.Pipe { return l.pipe }

// info implements endpoint.
func (l *link) info() PipeInfo {
	return PipeInfo{Pipe: l.id(), Function: l.pipe.Function(), Made: true, Priority: l.pipe.Priority()}
}

// queued implements endpoint.
func (l *link) queued() bool { return false }
