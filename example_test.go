package asterisque_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
)

// The README shows the body of this example; a test keeps the two the same.
func Example() {
	// The contract, which both sides share: a number, a name and types.
	greet := asterisque.Func[string, string](10, "greet")
	surround := asterisque.Func[string, string](11, "surround")
	ctx := context.Background()

	// One side offers greet. While that runs, it calls its caller back.
	server := asterisque.NewService()
	greet.Handle(server, func(ctx context.Context, name string) (string, error) {
		star, err := surround.Call(ctx, asterisque.SessionOf(ctx), name)
		return "hello, " + star, err
	})
	there := asterisque.NewNode(asterisque.WithService(server))
	defer there.Close()
	ln, err := wire.Listen(ctx, "tcp://127.0.0.1:0", wire.Options{})
	if err != nil {
		log.Panic(err)
	}
	go there.Serve(ctx, ln)

	// The other side offers surround, connects, and calls.
	client := asterisque.NewService()
	surround.Handle(client, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	here := asterisque.NewNode(asterisque.WithService(client))
	defer here.Close()
	sess, err := here.Dial(ctx, ln.URL())
	if err != nil {
		log.Panic(err)
	}
	message, err := greet.Call(ctx, sess, "asterisk")
	fmt.Println(message, err)
	// Output: hello, *asterisk* <nil>
}

// A function with a stream in each direction: it receives numbers, sends the sum after each, and
// returns their count.
func ExampleStream() {
	sum := asterisque.Stream[struct{}, int, int, int](20, "sum")
	svc := asterisque.NewService()
	sum.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[int, int]) (int, error) {
		count, total := 0, 0
		for n, err := range p.All(ctx) {
			if err != nil {
				return 0, err
			}
			count, total = count+1, total+n
			if err := p.Send(ctx, total); err != nil {
				return 0, err
			}
		}
		return count, nil
	})
	sess, closeNodes := dialService(svc)
	defer closeNodes()

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // ends the call if this function returns early
	call, err := sum.Open(ctx, sess, struct{}{})
	if err != nil {
		log.Panic(err)
	}
	for _, n := range []int{3, 1, 4} {
		if err := call.Send(ctx, n); err != nil {
			log.Panic(err)
		}
	}
	call.CloseSend()
	for total, err := range call.All(ctx) {
		fmt.Println(total, err)
	}
	count, err := call.Result(ctx)
	fmt.Println(count, "numbers", err)
	// Output:
	// 3 <nil>
	// 4 <nil>
	// 8 <nil>
	// 3 numbers <nil>
}

// An untyped call: parameters, Blocks and result are bytes that the library does not interpret.
func ExampleSession_Open() {
	svc := asterisque.NewService()
	svc.Handle(30, "upper", func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error) {
		for {
			b, err := p.Recv(ctx)
			if err == io.EOF {
				return append(params, " done"...), nil
			}
			if err == nil {
				err = p.Send(ctx, bytes.ToUpper(b.Payload))
			}
			if err != nil {
				return nil, err
			}
		}
	})
	sess, closeNodes := dialService(svc)
	defer closeNodes()

	ctx := context.Background()
	p, err := sess.Open(ctx, 30, []byte("well"), asterisque.WithPriority(-10))
	if err != nil {
		log.Panic(err)
	}
	defer p.Abort(nil) // no effect after the end of the call
	for _, s := range []string{"one", "two"} {
		if err := p.Send(ctx, []byte(s)); err != nil {
			log.Panic(err)
		}
		b, err := p.Recv(ctx)
		fmt.Println(string(b.Payload), err)
	}
	p.CloseSend()
	result, err := p.Result(ctx)
	fmt.Println(string(result), err)
	// Output:
	// ONE <nil>
	// TWO <nil>
	// well done <nil>
}

// countingWire counts the frames that this side sends over another Wire.
type countingWire struct {
	wire.Wire
	sent *atomic.Int64
}

func (w countingWire) WriteFrames(frames [][]byte) error {
	w.sent.Add(int64(len(frames)))
	return w.Wire.WriteFrames(frames)
}

// A session runs over any transport of frames: here over an in-process pipe inside an own Wire.
func ExampleNode_Attach() {
	svc := asterisque.NewService()
	double := asterisque.Func[int, int](40, "double")
	double.Handle(svc, func(_ context.Context, n int) (int, error) { return 2 * n, nil })
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	defer here.Close()
	defer there.Close()

	near, far := wire.Pipe()
	go there.Accept(context.Background(), far) // one side accepts, as after Listen
	var sent atomic.Int64
	// the other attaches, as after Dial
	sess, err := here.Attach(context.Background(), countingWire{near, &sent})
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(double.Call(context.Background(), sess, 21))
	fmt.Println(sent.Load(), "frames: the handshake and the call")
	// Output:
	// 42 <nil>
	// 2 frames: the handshake and the call
}

// The accepting side decides which functions it offers to a peer, or rejects the peer.
func ExampleWithAccess() {
	secret := asterisque.Func[string, string](50, "secret")
	all := asterisque.NewService()
	secret.Handle(all, func(context.Context, string) (string, error) { return "42", nil })
	nothing := asterisque.NewService()
	there := asterisque.NewNode(asterisque.WithService(all),
		asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			switch {
			case p.ID == "": // a name proves nothing, but is good for logs
				return nil, asterisque.ErrUnauthorized.Withf("a name is required")
			case p.Certificate() == nil:
				return &asterisque.Grant{Service: nothing}, nil
			default: // the certificate proves its identity
				return nil, nil // the node's own service
			}
		}}))
	defer there.Close()

	for _, id := range []string{"", "somebody"} {
		here := asterisque.NewNode(asterisque.WithID(id))
		defer here.Close()
		near, far := wire.Pipe()
		go there.Accept(context.Background(), far)
		sess, err := here.Attach(context.Background(), near)
		if err != nil {
			fmt.Println(err)
			continue
		}
		_, err = secret.Call(context.Background(), sess, "")
		fmt.Println(err)
	}
	// Output:
	// asterisque: unauthorized: a name is required (said by the peer)
	// asterisque: no such function: function 50 (said by the peer)
}

// An error reports the cause, on either side, and whether the call can be repeated without running
// twice.
func ExampleRepeatable() {
	const soldOut asterisque.Code = 1000 // codes from 1000 on are the application's
	order := asterisque.Func[int, string](60, "order")
	cancel := asterisque.Func[string, bool](61, "cancel")
	svc := asterisque.NewService()
	order.Handle(svc, func(context.Context, int) (string, error) {
		return "", &asterisque.Abort{Code: soldOut, Message: "none is left"}
	})
	sess, closeNodes := dialService(svc)
	defer closeNodes()

	_, err := order.Call(context.Background(), sess, 7)
	fmt.Println(errors.Is(err, &asterisque.Abort{Code: soldOut}), asterisque.Repeatable(err))

	_, err = cancel.Call(context.Background(), sess, "order 1")
	fmt.Println(errors.Is(err, asterisque.ErrNoFunction), asterisque.Repeatable(err))
	// Output:
	// true false
	// true true
}

// Shutdown waits for running calls.
func ExampleSession_Shutdown() {
	started, finish := make(chan struct{}), make(chan struct{})
	brew := asterisque.Func[string, string](70, "brew")
	svc := asterisque.NewService()
	brew.Handle(svc, func(_ context.Context, what string) (string, error) {
		close(started)
		<-finish
		return what + " is ready", nil
	})
	sess, closeNodes := dialService(svc)
	defer closeNodes()

	ctx := context.Background()
	answer := make(chan string, 1)
	go func() {
		s, _ := brew.Call(ctx, sess, "tea")
		answer <- s
	}()
	<-started
	close(finish)
	fmt.Println("shutdown:", sess.Shutdown(ctx))
	fmt.Println(<-answer)

	_, err := brew.Call(ctx, sess, "coffee")
	fmt.Println(err, "- repeatable:", asterisque.Repeatable(err))
	// Output:
	// shutdown: <nil>
	// tea is ready
	// asterisque: session closed: closed by the application - repeatable: true
}

// Metadata of a call travels beside its parameters.
func ExampleWithMetadata() {
	greet := asterisque.Func[string, string](10, "greet")
	svc := asterisque.NewService()
	greet.Handle(svc, func(ctx context.Context, name string) (string, error) {
		m := asterisque.MetadataOf(ctx)
		return fmt.Sprintf("%s %s, request %s", m.Text("greeting"), name, m.Text("request")), nil
	})
	sess, closeNodes := dialService(svc)
	defer closeNodes()

	// for all calls with this context, and for one of them
	ctx := asterisque.ContextWithMetadata(context.Background(), asterisque.Metadata{"request": "4711"})
	fmt.Println(greet.Call(ctx, sess, "asterisk", asterisque.WithMetadata(asterisque.Metadata{"greeting": "hello,"})))
	// Output: hello, asterisk, request 4711 <nil>
}

// The statistics of a node can be published as a variable of the program, which package expvar
// serves as JSON.
func ExampleNodeStats() {
	svc := asterisque.NewService()
	greet := asterisque.Func[string, string](10, "greet")
	greet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	sess, closeNodes := dialService(svc)
	defer closeNodes()
	here := asterisque.NewNode(asterisque.WithID("here"), asterisque.WithService(svc))
	defer here.Close()
	for range 3 {
		greet.Call(context.Background(), sess, "asterisk")
	}

	// a program calls expvar.Publish("asterisque", stats)
	stats := expvar.Func(func() any { return here.Stats() })
	var seen struct {
		ID        string
		Functions []struct {
			Name  string
			Calls int
		}
	}
	json.NewDecoder(strings.NewReader(stats.String())).Decode(&seen)
	fmt.Printf("%+v\n", seen)
	// Output: {ID:here Functions:[{Name:greet Calls:3}]}
}

// dialService returns a session with a node in this program that offers svc, and a function that
// closes both nodes.
func dialService(svc *asterisque.Service) (sess *asterisque.Session, closeNodes func()) {
	here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
	near, far := wire.Pipe()
	go there.Accept(context.Background(), far)
	sess, err := here.Attach(context.Background(), near)
	if err != nil {
		log.Panic(err)
	}
	return sess, func() { here.Close(); there.Close() }
}

// A server takes over its socket from systemd, if systemd has started it, and shuts down
// gracefully, so that a replacement is not noticed by clients.
func ExampleNode_Shutdown() {
	life, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	node := asterisque.NewNode()
	ln, err := wire.Inherited("", wire.Options{})
	if errors.Is(err, wire.ErrNotInherited) { // started by hand
		ln, err = wire.Listen(life, "tcp://127.0.0.1:0", wire.Options{})
	}
	if err != nil {
		log.Panic(err)
	}
	stop() // as SIGTERM does at a replacement
	if err := node.Serve(life, ln); err != nil {
		log.Panic(err)
	}
	// Running calls have 30 s to finish: see Timeouts.Drain.
	fmt.Println("ends:", node.Shutdown(context.Background()))
	// Output: ends: <nil>
}
