package interceptors_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"golang.org/x/time/rate"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/interceptors"
	"github.com/asterisque-go/asterisque/wire"
)

// between connects two nodes within the program; end closes both.
func between(here, there *asterisque.Node) (s *asterisque.Session, end func()) {
	near, far := wire.Pipe()
	go there.Accept(context.Background(), far)
	s, err := here.Attach(context.Background(), near)
	if err != nil {
		log.Panic(err)
	}
	return s, func() { here.Close(); there.Close() }
}

var greet = asterisque.Func[string, string](1, "greet")

// greeting is an option for a node with the function greet.
func greeting(opts ...asterisque.HandlerOption) asterisque.Option {
	svc := asterisque.NewService()
	greet.Handle(svc, func(ctx context.Context, name string) (string, error) {
		if name == "" {
			<-ctx.Done() // waits for somebody to greet
			return "", ctx.Err()
		}
		return "hello, " + name, nil
	}, opts...)
	return asterisque.WithService(svc)
}

func ExampleLog() {
	how := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch a.Key {
		case slog.TimeKey, "took", "address": // which differ in each run
			return slog.Attr{}
		}
		return a
	}}
	logger := slog.New(slog.NewTextHandler(os.Stdout, how))
	there := asterisque.NewNode(greeting(), asterisque.WithInboundInterceptors(interceptors.Log(logger, 1)))
	s, end := between(asterisque.NewNode(), there)
	defer end()
	greet.Call(context.Background(), s, "asterisk")
	// Output:
	// level=INFO msg=call function=1 name=greet side=served outcome=ok
}

// Each peer may make two calls a minute, and both at once.
func ExampleRatePerPeer() {
	limit := interceptors.RatePerPeer(rate.Every(30*time.Second), 2)
	there := asterisque.NewNode(greeting(), asterisque.WithInboundInterceptors(limit))
	s, end := between(asterisque.NewNode(), there)
	defer end()
	for range 3 {
		said, err := greet.Call(context.Background(), s, "asterisk")
		advice, _ := asterisque.RetryAfter(err)
		fmt.Println(said, errors.Is(err, asterisque.ErrOverloaded), advice.Round(10*time.Second))
	}
	// Output:
	// hello, asterisk false 0s
	// hello, asterisk false 0s
	//  true 30s
}

// All peers together may call the function once an hour.
func ExampleRatePerFunction() {
	limit := interceptors.RatePerFunction(rate.Every(time.Hour), 1)
	there := asterisque.NewNode(greeting(asterisque.WithFunctionInterceptors(limit)))
	s, end := between(asterisque.NewNode(), there)
	defer end()
	for range 2 {
		_, err := greet.Call(context.Background(), s, "asterisk")
		fmt.Println(errors.Is(err, asterisque.ErrOverloaded), asterisque.Repeatable(err))
	}
	// Output:
	// false false
	// true true
}

func ExampleTimeout() {
	here := asterisque.NewNode(asterisque.WithOutboundInterceptors(interceptors.Timeout(10 * time.Millisecond)))
	s, end := between(here, asterisque.NewNode(greeting()))
	defer end()
	_, err := greet.Call(context.Background(), s, "")
	fmt.Println(errors.Is(err, asterisque.ErrExpired))
	// Output:
	// true
}

func ExampleRetry() {
	refused := 0
	refuseTwice := func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
		if refused++; refused <= 2 {
			return c.Refuse(asterisque.ErrOverloaded)
		}
		return next(ctx, c)
	}
	retry := interceptors.Retry(&asterisque.Retry{First: time.Millisecond})
	s, end := between(asterisque.NewNode(), asterisque.NewNode(greeting(asterisque.WithFunctionInterceptors(refuseTwice))))
	defer end()
	fmt.Println(greet.Call(context.Background(), asterisque.Intercept(s, retry), "asterisk"))
	// Output:
	// hello, asterisk <nil>
}

// A price is looked up once for concurrent calls of several peers.
func ExampleCoalesceAcrossPeers() {
	price := asterisque.Func[string, int](2, "price")
	svc := asterisque.NewService()
	lookUp := func(context.Context, string) (int, error) { return 42, nil } // which takes long
	price.Handle(svc, lookUp, asterisque.WithFunctionInterceptors(interceptors.CoalesceAcrossPeers()))
	s, end := between(asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc)))
	defer end()
	fmt.Println(price.Call(context.Background(), s, "asterisk"))
	// Output:
	// 42 <nil>
}
