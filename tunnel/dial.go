package tunnel

import (
	"context"
	"net"
	"slices"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

// Dial opens a connection, a [Conn], to a function of the peer of on, usually a [Listener] there.
// ctx governs only the dial. Its values are used: a dial with the context of a handler is a nested
// call.
//
// Dial waits for room like [asterisque.Session.Open], and not for the peer: if the peer has no such
// function, or accepts no more connections, the first Read returns the error. The error of such a
// Read, and that of Dial, is a *[net.OpError] with an [asterisque.Abort]; [asterisque.Repeatable]
// reports whether it is safe to dial again.
//
// opts set the priority of the connection. [asterisque.WithTTL] bounds its life. A loss rate is
// ignored: all bytes arrive.
func Dial(ctx context.Context, on asterisque.Caller, function uint16, opts ...asterisque.CallOption) (net.Conn, error) {
	c, err := dial(ctx, on, function, opts)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: Addr(function), Err: err}
	}
	return c, nil
}

// dial is Dial without the OpError.
func dial(ctx context.Context, on asterisque.Caller, function uint16, opts []asterisque.CallOption) (*Conn, error) {
	if isNil(on) {
		return nil, neverSent(asterisque.ErrUnavailable.Withf("there is no session to dial on: it is nil"))
	}
	if err := ctx.Err(); err != nil {
		return nil, gaveUp(err, neverSent(codec.AbortOf(err)))
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	inTime := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	defer inTime() // also if an interceptor ends the goroutine
	p, err := asterisque.OpenOn(life, on, function, nil, append(slices.Clip(opts), asterisque.WithLoss(0))...)
	if !inTime() {
		if err == nil {
			p.Abort(ctx.Err())
			err = ctx.Err()
		}
		return nil, gaveUp(ctx.Err(), codec.AbortOf(err))
	}
	if err != nil {
		return nil, err
	}
	return dialled(p, on), nil
}

// dialled returns the connection over p, which was opened with on.
func dialled(p *pipe.Pipe, on asterisque.Caller) *Conn {
	switch on := on.(type) {
	case *asterisque.Session:
		return NewConn(p, on)
	case *asterisque.Connection:
		c := NewConn(p, nil)
		c.local, c.remote = addrs(on.Session(), p.Function()) // usually that of p
		return c
	default:
		return NewConn(p, nil)
	}
}

// isNil reports whether on is nil or a typed nil.
func isNil(on asterisque.Caller) bool {
	switch on := on.(type) {
	case nil:
		return true
	case *asterisque.Session:
		return on == nil
	case *asterisque.Connection:
		return on == nil
	}
	return false
}
