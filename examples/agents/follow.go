package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asterisque-go/asterisque"
)

// lines is a running call that sends lines; its result is their number.
type lines = *asterisque.StreamCall[struct{}, string, int]

// follow begins a call and receives its lines to the end; missing lines are an error. each is
// called with the number of each line, and may be nil. When ctx ends, so does the handler on the
// other side.
func follow(ctx context.Context, begin func(context.Context) (lines, error), each func(n int)) (got int, err error) {
	ctx, done := context.WithCancel(ctx)
	defer done()
	call, err := begin(ctx)
	if err != nil {
		return 0, err
	}
	for {
		_, err := call.Recv(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return got, err
		}
		got++
		if each != nil {
			each(got)
		}
	}
	sent, err := call.Result(ctx)
	if err == nil && sent != got {
		err = fmt.Errorf("%d lines were sent, and %d came", sent, got)
	}
	return got, err
}

// goesOn reports whether a call that failed with err certainly did not run, because its server
// drains, so that it can be made through another one.
func goesOn(err error) bool {
	return asterisque.Repeatable(err) && (errors.Is(err, asterisque.ErrUnavailable) || errors.Is(err, asterisque.ErrSessionClosed) || errors.Is(err, asterisque.ErrOverloaded))
}

const (
	longest = 30 * time.Second // time limit of operations that end by themselves
	goodbye = 3 * time.Second  // time limit at the end of the program
)

// patience returns a context for work that has begun, and is to be finished even if until ends.
func patience(until context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithTimeout(context.WithoutCancel(until), longest)
	stop := context.AfterFunc(until, func() { rest(ctx, goodbye); end() }) // ends with ctx
	return ctx, func() { stop(); end() }
}
