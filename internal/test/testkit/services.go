package testkit

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// Echo is a function that returns its parameter.
var Echo = asterisque.Func[string, string](10, "echo")

// EchoService offers Echo.
func EchoService() *asterisque.Service {
	svc := asterisque.NewService()
	Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	return svc
}

// Block is a function that runs until its context ends.
var Block = asterisque.Func[string, string](11, "block")

// BlockService offers Block. Each call sends its context on started, and the error of its context
// on ended.
func BlockService() (svc *asterisque.Service, started chan context.Context, ended chan error) {
	svc, started, ended = asterisque.NewService(), make(chan context.Context, 16), make(chan error, 16)
	Block.Handle(svc, func(ctx context.Context, _ string) (string, error) {
		started <- ctx
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	})
	return svc, started, ended
}

// Sums is a stream function that sends the running sum of the received values, and returns their
// number.
var Sums = asterisque.Stream[Window, int, int, int](20, "sums")

// SumService offers Sums.
func SumService() *asterisque.Service {
	svc := asterisque.NewService()
	Sums.Handle(svc, func(ctx context.Context, w Window, p *asterisque.Pipe[int, int]) (int, error) {
		sum, n := 0, 0
		for v, err := range p.All(ctx) {
			if err != nil {
				return n, err
			}
			sum += v
			if n++; n%w.N == 0 {
				if err := p.Send(ctx, sum); err != nil {
					return n, err
				}
			}
		}
		return n, p.CloseSend()
	})
	return svc
}

// Work is the function whose runs a Ledger counts.
var Work = asterisque.Func[int, int](30, "work")

// Keyed is an Open of Work with an idempotency key, of the length required from a peer without a
// proven identity.
func Keyed(pipe uint64, key string) *message.Open {
	return &message.Open{Pipe: pipe, Function: Work.Number(), Params: []byte{0x05}, Meta: message.Meta{Key: []byte(fmt.Sprintf("%-16s", key))}}
}

// Nested is a function that calls its caller back until the parameter is zero, and returns the
// number of calls.
var Nested = asterisque.Func[int, int](20, "nested")

// WaitForContext is a handler that receives nothing and waits for the end of its call.
func WaitForContext(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// GatedService offers function 50, which receives Blocks once the gate is opened, and sends on
// running when it runs.
func GatedService() (svc *asterisque.Service, gate, running chan struct{}, took *atomic.Int64) {
	svc, gate, running, took = asterisque.NewService(), make(chan struct{}), make(chan struct{}, 100), new(atomic.Int64)
	svc.Handle(50, "gated", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		running <- struct{}{}
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		for {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			took.Add(int64(len(b.Payload)))
		}
	})
	return svc, gate, running, took
}

// CallsBackService offers function 50, which waits for its context, and 51, which calls its caller
// back.
func CallsBackService() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(50, "waits", WaitForContext)
	svc.Handle(51, "calls back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		return asterisque.SessionOf(ctx).Call(ctx, 1, nil)
	})
	return svc
}

// Within marks an Open as nested in a call of the other side.
func Within(o *message.Open, call uint64) *message.Open {
	o.Meta.Nested, o.Meta.Within = true, call
	return o
}

// CallsBack is a service with function 70, which calls its caller back and waits for the answer.
func CallsBack() *asterisque.Service {
	svc, _ := Dreamers()
	svc.Handle(70, "back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		return asterisque.SessionOf(ctx).Call(ctx, 71, nil)
	})
	svc.Handle(72, "sleep", WaitForContext)
	return svc
}

// Noise returns size random bytes, followed by their hash.
func Noise(rnd *rand.Rand, size int) []byte {
	b := make([]byte, size, size+sha256.Size)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// Holder serves Held.
type Holder struct {
	Began     chan string   // the parameters of each call at its start
	End       chan struct{} // one token ends one call; closing ends all
	Now, Most atomic.Int64  // number of running calls
}

// Serve is the handler of Held.
func (h *Holder) Serve(ctx context.Context, p string) (string, error) {
	raise(&h.Most, h.Now.Add(1))
	defer h.Now.Add(-1)
	h.Began <- p
	select {
	case <-h.End:
		return p, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Order returns the parameters of the started calls, in order.
func (h *Holder) Order() (list []string) {
	for len(h.Began) > 0 {
		list = append(list, <-h.Began)
	}
	return list
}

// NewHolder returns a Holder. Its calls run until End.
func NewHolder() *Holder { return &Holder{Began: make(chan string, 100_000), End: make(chan struct{})} }

// HoldService offers Held, with options, and Echo.
func HoldService(opts ...asterisque.HandlerOption) (*asterisque.Service, *Holder) {
	svc, h := EchoService(), NewHolder()
	Held.Handle(svc, h.Serve, opts...)
	return svc, h
}

// Functions with values that are bytes, and with values that are decoded.
var (
	Raw     = asterisque.Func[[]byte, []byte](60, "raw")
	Decoded = asterisque.Func[Letter, Letter](61, "decoded")
)

// Letter is a parameter with bytes in it.
type Letter struct{ Text []byte }

// EndAs ends a call in the way that how names.
func EndAs(_ context.Context, how string) (string, error) {
	switch how {
	case "k panic":
		panic("kaboom")
	case "k error":
		return "", ErrBroken
	case "k large":
		return strings.Repeat("x", 5<<20), nil
	}
	return how, nil
}

// Window is the number of values after which Sums sends a sum.
type Window struct{ N int }

// Discard is a handler that reads a stream of bytes to its end.
func Discard(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
	_, err := io.Copy(io.Discard, stream.NewReader(p))
	return nil, err
}

// Held is a function. Its calls run until their Holder ends them.
var Held = asterisque.Func[string, string](60, "held")

// raise raises most to n if it is lower.
func raise(most *atomic.Int64, n int64) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}

// Passes is an interceptor without an effect.
func Passes(ctx context.Context, c *asterisque.Call, next asterisque.Next) error { return next(ctx, c) }
