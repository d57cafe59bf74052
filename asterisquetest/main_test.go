package asterisquetest_test

import (
	"context"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

var background = context.Background()

var (
	greet = asterisque.Func[string, string](10, "greet")
	hold  = asterisque.Func[string, string](11, "hold")
	stay  = asterisque.Func[string, string](12, "stay")
	sum   = asterisque.Stream[int, int, int, int](20, "sum")
)

// service offers three functions: greet; hold, which returns when its context ends; and sum, a
// stream that adds the received numbers to its parameter.
func service() *asterisque.Service {
	svc := asterisque.NewService()
	greet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	hold.Handle(svc, func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	sum.Handle(svc, add)
	return svc
}

func add(ctx context.Context, n int, p *asterisque.Pipe[int, int]) (int, error) {
	for v, err := range p.All(ctx) {
		if err != nil {
			return 0, err
		}
		n += v
	}
	return n, nil
}

// sumOf calls the function sum and sends numbers.
func sumOf(ctx context.Context, on asterisque.Caller, first int, numbers ...int) (int, error) {
	c, err := sum.Open(ctx, on, first)
	if err != nil {
		return 0, err
	}
	defer c.Abort(nil)
	for _, n := range numbers {
		if err := c.Send(ctx, n); err != nil {
			return 0, err
		}
	}
	if err := c.CloseSend(); err != nil {
		return 0, err
	}
	return c.Result(ctx)
}
