package wiretest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// The application's view of a connection that is lost during a call.
func ExampleFaulty() {
	var (
		greet  = asterisque.Func[string, string](10, "greet")
		ponder = asterisque.Func[string, string](11, "ponder")
		ctx    = context.Background()
	)
	pondering, told := make(chan struct{}), make(chan error, 1)
	svc := asterisque.NewService()
	greet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	ponder.Handle(svc, func(ctx context.Context, _ string) (string, error) {
		close(pondering)
		<-ctx.Done()
		told <- ctx.Err()
		return "", ctx.Err()
	})
	there, here := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode()
	defer there.Close()
	defer here.Close()

	// A session over an in-process Wire with one faulty end.
	a, b := wire.Pipe()
	faulty := wiretest.Faulty(b, wiretest.Faults{})
	go there.Accept(ctx, a)
	sess, err := here.Attach(ctx, faulty)
	if err != nil {
		log.Fatal(err)
	}
	greeting, err := greet.Call(ctx, sess, "asterisk")
	fmt.Println(greeting, err)

	// The connection is cut.
	go func() {
		<-pondering
		faulty.Cut()
	}()
	_, err = ponder.Call(ctx, sess, "why?")
	fmt.Println("the caller:", errors.Is(err, asterisque.ErrSessionClosed), "- safe to repeat:", asterisque.Repeatable(err))
	fmt.Println("the handler:", <-told)
	_, err = greet.Call(ctx, sess, "asterisk")
	fmt.Println("the next call:", errors.Is(err, asterisque.ErrSessionClosed), "- safe to repeat:", asterisque.Repeatable(err))
	// Output:
	// hello, asterisk <nil>
	// the caller: true - safe to repeat: false
	// the handler: context canceled
	// the next call: true - safe to repeat: true
}

// The cost of a call over a path with low bandwidth and high latency.
func ExampleLink() {
	greet := asterisque.Func[string, string](10, "greet")
	svc := asterisque.NewService()
	greet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	there, here := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode()
	defer there.Close()
	defer here.Close()

	// 10 Mbit/s and a round-trip time of 40 ms, behind a queue of 64 KiB.
	lane := wiretest.Lane{Rate: 1_250_000, Delay: 20 * time.Millisecond, Queue: 64 << 10}
	link := wiretest.NewLink(wiretest.LinkConfig{Out: lane, In: lane})
	a, b := link.Pipe()
	ctx := context.Background()
	go there.Accept(ctx, wire.FromConn(b))
	sess, err := here.Attach(ctx, wire.FromConn(a))
	if err != nil {
		log.Fatal(err)
	}
	begin := time.Now()
	greeting, err := greet.Call(ctx, sess, "asterisk")
	fmt.Println(greeting, err)
	fmt.Println("a round trip:", time.Since(begin) >= 40*time.Millisecond)
	out, _ := link.Stats()
	fmt.Println("little has waited at the bottleneck:", out.Most < 1000, "- and nothing was lost:", out.Dropped == 0)
	// Output:
	// hello, asterisk <nil>
	// a round trip: true
	// little has waited at the bottleneck: true - and nothing was lost: true
}
