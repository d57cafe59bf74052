package asterisquetest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
)

// The program under test calls Greet and Bye.
var (
	Greet = asterisque.Func[string, string](10, "greet")
	Bye   = asterisque.Func[string, string](11, "bye")
)

// test runs the body of a test and prints its failures.
func test(body func(t testing.TB)) {
	for _, said := range run(func(t *fakeT) { body(t) }) {
		fmt.Println(said)
	}
}

// Both ends of a session, in one line. In a real test, a func TestGreeting(t *testing.T), or a
// synctest.Test within it, takes the place of test.
func ExampleConnect() {
	test(func(t testing.TB) {
		svc := asterisque.NewService()
		Greet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
		here, _ := asterisquetest.Connect(t, svc)

		greeting, err := Greet.Call(t.Context(), here, "asterisk")
		fmt.Println(greeting, err)
	})
	// Output: hello, asterisk <nil>
}

// The program under test gets a Caller; the example implements the peer of that Caller.
func ExamplePeer() {
	// welcome is a function of the program under test.
	welcome := func(ctx context.Context, on asterisque.Caller, names ...string) (greetings []string, err error) {
		for _, name := range names {
			greeting, err := Greet.Call(ctx, on, name)
			if errors.Is(err, asterisque.ErrOverloaded) {
				greeting, err = Greet.Call(ctx, on, name)
			}
			if err != nil {
				return nil, err
			}
			greetings = append(greetings, greeting)
		}
		return greetings, nil
	}

	test(func(t testing.TB) {
		peer := asterisquetest.NewPeer(t)
		calls := 0
		Greet.Handle(peer.Service, func(_ context.Context, name string) (string, error) {
			if calls++; calls == 2 {
				return "", asterisque.ErrOverloaded
			}
			return "hello, " + name, nil
		})
		fmt.Println(welcome(t.Context(), peer, "Alice", "Bob"))
		fmt.Println(calls, "calls")

		// An unexpected call fails the test. A program that dials uses peer.URL().
		_, err := Bye.Call(t.Context(), peer, "Alice")
		fmt.Println(err)
	})
	// Output:
	// [hello, Alice hello, Bob] <nil>
	// 3 calls
	// asterisque: no such function: function 11 (said by the peer)
	// asterisquetest: the program has called function 11, for which its peer has no handler, with "Alice"
}

// The reaction of the program to the loss of its session during a call.
func ExampleFake() {
	test(func(t testing.TB) {
		fake := asterisquetest.NewFake(t)
		asterisquetest.Answer(fake, Greet, func(_ context.Context, name string) (string, error) {
			return "hello, " + name, nil
		})
		fmt.Println(Greet.Call(t.Context(), fake, "asterisk"))

		fake.Fail(Greet, asterisque.ErrSessionClosed.Withf("the wire was cut"))
		_, err := Greet.Call(t.Context(), fake, "asterisk")
		fmt.Println(err, "- repeat it:", asterisque.Repeatable(err))
	})
	// Output:
	// hello, asterisk <nil>
	// asterisque: session closed: the wire was cut - repeat it: false
}

// A Recorder records the calls of the program, their parameters and their outcomes.
func ExampleRecorder() {
	test(func(t testing.TB) {
		fake := asterisquetest.NewFake(t)
		asterisquetest.Answer(fake, Greet, func(_ context.Context, name string) (string, error) {
			if name == "" {
				return "", asterisque.ErrBadParams.Withf("a name is missing")
			}
			return "hello, " + name, nil
		})
		var rec asterisquetest.Recorder
		on := asterisque.Intercept(fake, rec.Intercept) // or WithOutboundInterceptors, for a node

		Greet.Call(t.Context(), on, "asterisk", asterisque.WithPriority(3))
		Greet.Call(t.Context(), on, "")

		fmt.Printf("%q\n", asterisquetest.ParamsOf(t, &rec, Greet))
		for _, c := range rec.Calls() {
			fmt.Println(c, "- priority", c.Priority)
		}
	})
	// Output:
	// ["asterisk" ""]
	// made function 10 "greet" with "asterisk": "hello, asterisk" - priority 3
	// made function 10 "greet" with "": asterisque: bad parameters: a name is missing - priority 0
}
