package asterisque

import (
	"context"
	"io"
	"iter"
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/sizing"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/pipe"
)

// StreamFunction is a function that takes P and returns T, and while it runs receives Blocks of
// type S from its caller and sends Blocks of type R. Like a [Function] it is declared once for both
// sides.
type StreamFunction[P, S, R, T any] struct {
	number uint16
	name   string
	free   streamFree
}

// streamFree has, for each type of a stream, the bytes that need no estimate: see sizing.Free.
type streamFree struct {
	params, sent, received, result int // from the view of the caller
}

// Stream declares a function that carries Blocks, with the types of the parameters, the caller's
// Blocks, the callee's Blocks, and the result.
func Stream[P, S, R, T any](number uint16, name string) StreamFunction[P, S, R, T] {
	return StreamFunction[P, S, R, T]{number, name, streamFree{
		sizing.Free(reflect.TypeFor[P]()), sizing.Free(reflect.TypeFor[S]()), sizing.Free(reflect.TypeFor[R]()), sizing.Free(reflect.TypeFor[T]()),
	}}
}

// Number returns the function's number.
func (f StreamFunction[P, S, R, T]) Number() uint16 { return f.number }

// Name returns the function's name.
func (f StreamFunction[P, S, R, T]) Name() string { return f.name }

// Handle registers h as the function's handler. h may send and receive on p until it returns.
// [Service.Handle] documents the context, errors and panics of h, and invalid registrations.
func (f StreamFunction[P, S, R, T]) Handle(svc *Service, h func(ctx context.Context, params P, p *Pipe[R, S]) (T, error), opts ...HandlerOption) {
	checkHandler(f.number, f.name, h == nil)
	serve := func(ctx context.Context, c call.HandlerCall, k *dispatch.Workspace) (result []byte, err error) {
		var params P
		if !takeDecoded(c, &params) {
			if err := c.DecodeParams(&params); err != nil {
				return nil, err
			}
		}
		t, err := h(ctx, params, &Pipe[R, S]{p: c.Pipe(), values: c.Coder(), name: f.name, free: f.free.sent, undecoded: codec.BadParams})
		if err != nil {
			return nil, err
		}
		return c.EncodeResult(k, &t)
	}
	svc.set(f.number, opts, &functionHandler{
		Handler: call.Handler{Name: f.name, Blocks: true, Params: reflect.TypeFor[P](), Free: f.free.params, Serve: serve},
		types:   signature{reflect.TypeFor[P](), reflect.TypeFor[T](), reflect.TypeFor[S](), reflect.TypeFor[R]()},
		places: func() (valuePlace, valuePlace) {
			return &typedPlace[P]{free: f.free.params}, &typedPlace[T]{free: f.free.result}
		},
	})
}

// Open calls the function at the peer of a session, or on any other [Caller], and returns the
// running call. life governs the whole call: when it ends, the call is aborted, and the handler's
// context ends. See [Session.Open].
func (f StreamFunction[P, S, R, T]) Open(life context.Context, on Caller, params P, opts ...CallOption) (*StreamCall[S, R, T], error) {
	c := newTypedCall[P, T](f.number, f.name, params, f.free.result, newCallConfig(opts))
	c.call.blocks = true
	if a := c.make(life, on); a != nil {
		return nil, a
	}
	return &StreamCall[S, R, T]{Pipe[S, R]{p: c.pipe, values: &c.x.Coder, name: f.name, free: f.free.received, undecoded: codec.BadResult}, f.free.result}, nil
}

// StreamCall is a running call of a [StreamFunction], on the caller's side.
type StreamCall[S, R, T any] struct {
	Pipe[S, R]
	result int // bytes that need no estimate
}

// Result waits for the end of the call and returns its result. Blocks that have arrived and have
// not been received remain available. The errors are those of [pipe.Pipe.Result], and ErrBadResult.
func (c *StreamCall[S, R, T]) Result(ctx context.Context) (result T, err error) {
	b, err := c.p.Result(ctx)
	if err != nil {
		return result, err
	}
	if err := c.values.DecodeWithin(b, &result, c.result, reflect.TypeFor[T](), false); err != nil {
		return result, values.Error(codec.BadResult, c.p.Function(), c.name, "result", err)
	}
	return result, nil
}

// Abort ends the call from this side, and with it the handler's context. A nil err stands for
// ErrCanceled. Abort has no effect after the end of the call.
func (c *StreamCall[S, R, T]) Abort(err error) { c.p.Abort(err) }

// All is [Pipe.All], and ends the call when the loop is left before its last value: it calls Abort,
// and the handler's context ends. Use Recv to receive some values, and further ones or the result
// later.
func (c *StreamCall[S, R, T]) All(ctx context.Context) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		left := false
		defer func() {
			if left { // by break, return, a panic or runtime.Goexit
				c.Abort(codec.ErrCanceled.Withf("the loop over the values of the call was left before the last one"))
			}
		}()
		for v, err := range c.Pipe.All(ctx) {
			left = true
			more := yield(v, err)
			if left = !more && err == nil; !more {
				return
			}
		}
	}
}

// Pipe is one side of a running call that sends values of type S and receives values of type R. All
// methods may be called concurrently; when several goroutines receive, each value goes to one of
// them.
type Pipe[S, R any] struct {
	p      *pipe.Pipe
	values *values.Coder
	name   string
	free   int // bytes of a received value that need no estimate
	// code for a Block that does not decode: that of wrong parameters for a handler, of a wrong
	// result for a caller
	undecoded codec.Code

	skipped atomic.Uint64 // values that are missing before those that Recv has returned
}

// Untyped returns the underlying pipe. Its Blocks are encoded values.
func (p *Pipe[S, R]) Untyped() *pipe.Pipe { return p.p }

// blockBuffers holds buffers for the encoding of values.
var blockBuffers = sync.Pool{New: func() any { return new([]byte) }}

// Send sends v as one Block. It waits while the window of the pipe is exhausted or the session is
// at its outbound soft limit. The errors are those of [pipe.Pipe.Send], ErrBadResult for a value
// that cannot be encoded, and ErrPanicked if encoding panics.
func (p *Pipe[S, R]) Send(ctx context.Context, v S) error {
	buf := blockBuffers.Get().(*[]byte)
	defer blockBuffers.Put(buf)
	b, _, err := p.values.Encode((*buf)[:0], &v, false)
	if err != nil {
		return values.Error(codec.BadResult, p.p.Function(), p.name, "Block", err)
	}
	if cap(b) <= call.MaxKeptResult {
		*buf = b
	}
	return p.p.Send(ctx, b)
}

// post is Send without waiting: it fails with ErrOverloaded if Send would wait.
func (p *Pipe[S, R]) post(v S) error {
	b, _, err := p.values.Encode(nil, &v, false)
	if err != nil {
		return values.Error(codec.BadResult, p.p.Function(), p.name, "Block", err)
	}
	_, err = p.p.Post(b)
	return err
}

// CloseSend ends this side's values: the peer's Recv returns io.EOF after the last of them. It does
// not block.
func (p *Pipe[S, R]) CloseSend() error { return p.p.CloseSend() }

// Recv waits for the next value. After the last one it returns io.EOF. The errors are those of
// [pipe.Pipe.Recv], and for a Block that does not decode as R, or exceeds [Limits].Expansion,
// ErrBadResult at the caller and ErrBadParams in a handler. If decoding panics the error is
// ErrPanicked. Later values can be received after such errors.
func (p *Pipe[S, R]) Recv(ctx context.Context) (v R, err error) {
	b, err := p.p.Recv(ctx)
	if err != nil {
		return v, err
	}
	defer b.Release() // v has no part of it
	p.skipped.Add(b.Skipped)
	if err := p.values.DecodeWithin(b.Payload, &v, p.free, reflect.TypeFor[R](), false); err != nil {
		return v, values.Error(p.undecoded, p.p.Function(), p.name, "Block", err)
	}
	return v, nil
}

// Skipped returns the total number of the peer's values that were dropped on the way: before the
// value that Recv has returned last, and, once it has returned io.EOF, at the end as well. The
// difference of two results is the number between the two moments. Blocks received from the
// underlying pipe do not count.
func (p *Pipe[S, R]) Skipped() uint64 { return p.skipped.Load() + p.p.Skipped() }

// All returns the remaining values, until the last one or the first error, which is the second
// element of the pair. Leaving the loop earlier does not end the call: later values remain
// available. Callers use [StreamCall.All].
func (p *Pipe[S, R]) All(ctx context.Context) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for {
			v, err := p.Recv(ctx)
			if err == io.EOF || !yield(v, err) || err != nil {
				return
			}
		}
	}
}
