package asterisque

import (
	"bytes"
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/pipe"
)

// link is the endpoint of a pipe that carries Blocks: a pipe and its port.
type link struct {
	port
	whole  pipe.Pipe          // what port.pipe points to
	cancel context.CancelFunc // ends the watch over the context of the pipe; nil if there is none
}

// Open calls a function of the peer and returns the pipe of the running call, which carries Blocks both ways until the call ends. It keeps no part of params.
// ctx governs the whole call: when it ends, the call is aborted, and the handler's context ends. Open waits while the session is at its outbound soft limit, but not
// for the peer. Every error is an *[Abort].
//
// A pipe occupies memory on both sides until it comes to its end: by itself, by Abort or through ctx.
func (s *Session) Open(ctx context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	cfg := newCallConfig(opts)
	expires, a := s.lifetime(ctx, cfg.ttl)
	if a == nil {
		a = s.reserveOpen(ctx, len(params))
	}
	if a != nil {
		return nil, a
	}
	l := &link{port: port{s: s, flow: outbox.NewFlow(cfg.priority)}}
	l.pipe = &l.whole
	l.pipe.Init(pipe.Config{Function: function, Priority: cfg.priority, Loss: cfg.loss, Port: l, SendLimit: s.peer.window, Window: s.cfg.window})
	l.watch(ctx, cfg)
	m := outbox.Message{Type: codec.OpenType, Function: function, Payload: params, Expires: expires, Departer: l}
	if err := l.put(&m); err != nil {
		l.release()
		s.opens.giveBack()
		if over := l.pipe.Err(); over != nil { // ctx ended meanwhile
			err = neverSent(over)
		}
		return nil, err
	}
	return l.pipe, nil
}

// watch aborts the pipe when ctx ends or the time to live has passed.
func (l *link) watch(ctx context.Context, cfg callConfig) {
	switch {
	case cfg.ttl > 0:
		ctx, l.cancel = context.WithTimeout(ctx, cfg.ttl)
	case ctx.Done() != nil:
		ctx, l.cancel = context.WithCancel(ctx)
	default:
		return
	}
	context.AfterFunc(ctx, func() { l.pipe.Abort(contextError(ctx)) }) // after the end of the call it does nothing
}

// release ends the watch.
func (l *link) release() {
	if l.cancel != nil {
		l.cancel()
	}
}

// Close implements pipe.Port.
func (l *link) Close(result []byte, abort *codec.Abort) {
	l.release()
	l.port.Close(result, abort)
}

// Depart implements outbox.Departer.
func (l *link) Depart(id uint64) {
	l.id = id
	l.s.table.depart(id, l)
}

// Discard implements outbox.Departer: the Open was not sent. The goroutine is for the lock that the caller holds; it ends by itself.
func (l *link) Discard(why outbox.Reason) { go l.fail(l.discarded(why)) }

// block implements endpoint.
func (l *link) block(b codec.Block) error { return l.deliver(l.pipe, b) }

// credit implements endpoint.
func (l *link) credit(total uint64) { (*pipe.End)(l.pipe).Credit(total) }

// stop implements endpoint.
func (l *link) stop() { (*pipe.End)(l.pipe).Stop() }

// closed implements endpoint.
func (l *link) closed(m codec.Close) {
	l.closedBy(m.Abort)
	if m.Abort != nil {
		l.fail(remote(m.Abort))
		return
	}
	(*pipe.End)(l.pipe).Closed(bytes.Clone(m.Result), nil)
	l.release()
}

// fail implements endpoint.
func (l *link) fail(a *Abort) {
	(*pipe.End)(l.pipe).Closed(nil, a)
	l.release()
}

// untyped implements endpoint.
func (l *link) untyped() *pipe.Pipe { return l.pipe }
