package asterisque_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"sync/atomic"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/pipe"
)

var echo = asterisque.Func[string, string](10, "echo")

func echoService() *asterisque.Service {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	return svc
}

// block is a function that runs until its context ends.
var block = asterisque.Func[string, string](11, "block")

// blockService offers block. Each call announces its context on started, and on ended how it ended.
func blockService() (svc *asterisque.Service, started chan context.Context, ended chan error) {
	svc, started, ended = asterisque.NewService(), make(chan context.Context, 16), make(chan error, 16)
	block.Handle(svc, func(ctx context.Context, _ string) (string, error) {
		started <- ctx
		<-ctx.Done()
		ended <- ctx.Err()
		return "", ctx.Err()
	})
	return svc, started, ended
}

// sums sends the running sum of what it gets, and returns the number of values.
var sums = asterisque.Stream[window, int, int, int](20, "sums")

func sumService() *asterisque.Service {
	svc := asterisque.NewService()
	sums.Handle(svc, func(ctx context.Context, w window, p *asterisque.Pipe[int, int]) (int, error) {
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

var work = asterisque.Func[int, int](30, "work")

// keyed is an Open of work with an idempotency key, as long as a peer has to make it that has not
// proved who it is.
func keyed(pipe uint64, key string) *message.Open {
	return &message.Open{Pipe: pipe, Function: work.Number(), Params: []byte{0x05}, Meta: message.Meta{Key: []byte(fmt.Sprintf("%-16s", key))}}
}

// nested calls its caller back until the parameter is zero, and returns how often.
var nested = asterisque.Func[int, int](20, "nested")

// waitForContext is a handler that takes no Block and waits for the end of its call.
func waitForContext(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// gatedService offers function 50, which takes Blocks once the gate is opened, and says when it
// runs.
func gatedService() (svc *asterisque.Service, gate, running chan struct{}, took *atomic.Int64) {
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

// callsBackService offers function 50, which waits for its context, and 51, which calls its caller
// back.
func callsBackService() *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(50, "waits", waitForContext)
	svc.Handle(51, "calls back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		return asterisque.SessionOf(ctx).Call(ctx, 1, nil)
	})
	return svc
}

// within makes an Open one within a call of the other side.
func within(o *message.Open, call uint64) *message.Open {
	o.Meta.Nested, o.Meta.Within = true, call
	return o
}

// callsBack is a service whose function 70 calls its caller back, and waits for the answer.
func callsBack() *asterisque.Service {
	svc, _ := dreamers()
	svc.Handle(70, "back", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
		return asterisque.SessionOf(ctx).Call(ctx, 71, nil)
	})
	svc.Handle(72, "sleep", waitForContext)
	return svc
}

// noise returns that many random bytes, behind which comes their hash.
func noise(rnd *rand.Rand, size int) []byte {
	b := make([]byte, size, size+sha256.Size)
	for i := range b {
		b[i] = byte(rnd.Uint32())
	}
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// holder serves held.
type holder struct {
	began     chan string   // the parameters of each call, as it begins
	end       chan struct{} // one token lets one call return; closed, all
	now, most atomic.Int64  // calls that run
}

func (h *holder) serve(ctx context.Context, p string) (string, error) {
	raise(&h.most, h.now.Add(1))
	defer h.now.Add(-1)
	h.began <- p
	select {
	case <-h.end:
		return p, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// order returns the parameters of the calls that have begun, in their order.
func (h *holder) order() (list []string) {
	for len(h.began) > 0 {
		list = append(list, <-h.began)
	}
	return list
}

func newHolder() *holder { return &holder{began: make(chan string, 100_000), end: make(chan struct{})} }

// holdService offers held, with options, and echo.
func holdService(opts ...asterisque.HandlerOption) (*asterisque.Service, *holder) {
	svc, h := echoService(), newHolder()
	held.Handle(svc, h.serve, opts...)
	return svc, h
}
