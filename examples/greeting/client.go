package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

const (
	toServer   = "client → server"
	fromServer = "client ← server"
)

// clientService has the functions that the client offers to the server.
func clientService() *asterisque.Service {
	svc := asterisque.NewService()
	surround.Handle(svc, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	return svc
}

// visit connects to a server, shows the abilities of a session, and shuts down gracefully.
func visit(ctx context.Context, url string, t *teller) error {
	node := asterisque.NewNode(asterisque.WithID("client"), asterisque.WithService(clientService()))
	defer node.Close()
	sess, err := node.Dial(ctx, url)
	if err != nil {
		return err
	}
	t.tell(toServer, "session %s with %q begins", name(sess), sess.Peer().ID)
	for _, show := range []func(context.Context, *asterisque.Session, *teller) error{
		showCall, showManyCalls, showStream, showError, showDeadline,
	} {
		if err := show(ctx, sess, t); err != nil {
			return err
		}
	}
	t.tell(toServer, "shuts down")
	return node.Shutdown(ctx)
}

// showCall makes a call during which the server calls back.
func showCall(ctx context.Context, sess *asterisque.Session, t *teller) error {
	t.tell(toServer, "greet(%q)", "asterisk")
	begin := time.Now()
	greeting, err := greet.Call(ctx, sess, "asterisk")
	if err != nil {
		return err
	}
	t.tell(fromServer, "%q, after %s", greeting, roughly(time.Since(begin)))
	return nil
}

// showManyCalls makes many concurrent calls over the one connection.
func showManyCalls(ctx context.Context, sess *asterisque.Session, t *teller) error {
	const calls = 1000
	t.tell(toServer, "square(0) … square(%d), all at once", calls-1)
	begin := time.Now()
	results, errs := make([]int, calls), make([]error, calls)
	var wg sync.WaitGroup
	for i := range calls {
		wg.Go(func() { results[i], errs[i] = square.Call(ctx, sess, i) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	t.tell(fromServer, "0 … %d, after %s", results[calls-1], roughly(time.Since(begin)))
	return nil
}

// showStream sends numbers while a call runs, and receives a sum for each.
func showStream(ctx context.Context, sess *asterisque.Session, t *teller) error {
	call, err := sum.Open(ctx, sess, struct{}{})
	if err != nil {
		return err
	}
	numbers := []int{3, 1, 4, 1, 5, 9}
	t.tell(toServer, "sum: sends %s", list(numbers))
	for _, n := range numbers {
		if err := call.Send(ctx, n); err != nil {
			return err
		}
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	var sums []int
	for s, err := range call.All(ctx) {
		if err != nil {
			return err
		}
		sums = append(sums, s)
	}
	count, err := call.Result(ctx)
	if err != nil {
		return err
	}
	t.tell(fromServer, "sum: gets  %s, and the result: %d numbers", list(sums), count)
	return nil
}

// showError calls a missing function. The error has the reason, and whether a retry is safe.
func showError(ctx context.Context, sess *asterisque.Session, t *teller) error {
	t.tell(toServer, "sing(%q)", "la la la")
	_, err := sing.Call(ctx, sess, "la la la")
	if !errors.Is(err, asterisque.ErrNoFunction) {
		return fmt.Errorf("sing: want %w, got %w", asterisque.ErrNoFunction, err)
	}
	t.tell(fromServer, "%v; %s", err, repeatable(err))
	return nil
}

// patience is the deadline that showDeadline sets.
const patience = 50 * time.Millisecond

// showDeadline calls a function that would take forever. The deadline crosses with the call, and
// ends it on both sides.
func showDeadline(ctx context.Context, sess *asterisque.Session, t *teller) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t.tell(toServer, "ponder(%q), within %v", "why?", patience)
	_, err := ponder.Call(ctx, sess, "why?")
	if !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("ponder: want %w, got %w", context.DeadlineExceeded, err)
	}
	t.tell(fromServer, "%v; %s", err, repeatable(err))
	return nil
}

func repeatable(err error) string {
	if asterisque.Repeatable(err) {
		return "it did not run: safe to repeat"
	}
	return "it may have run: not safe to repeat"
}

// name returns a prefix of the session's id that identifies it here; both sides have the same.
func name(sess *asterisque.Session) string { return sess.ID().String()[:8] }

func list(numbers []int) string { return strings.Trim(fmt.Sprint(numbers), "[]") }
