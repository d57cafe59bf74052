package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/asterisque-go/asterisque"
)

const (
	patience = time.Minute // for one case
	// callers of the many calls; a side has more workers and waiting calls
	atOnce    = 128
	blocks    = 2000 // of a stream: more than a window, at 65 bytes each
	callbacks = 100  // at once, more than workers
	depth     = 8    // of each of them
)

// testCase is one row of the matrix.
type testCase struct {
	name    string
	run     func(context.Context, *caller) error
	raw     string // the reason to skip it with the value codec raw; empty if there is none
	classic string // the reason to skip it over the classic protocol; empty if there is none
}

// result is the outcome of a case.
type result struct {
	name string
	took time.Duration
	err  error // nil, a skipped, or the reason of the failure
}

// skipped is the reason why a case does not apply.
type skipped string

func (s skipped) Error() string { return string(s) }

func (r result) outcome() string {
	var s skipped
	switch {
	case r.err == nil:
		return "ok"
	case errors.As(r.err, &s):
		return "skipped"
	}
	return "FAILED"
}

// print writes the result on a line.
func (r result) print(w io.Writer) {
	why := ""
	if r.err != nil {
		why = "  " + r.err.Error()
	}
	fmt.Fprintf(w, "%-8s%-32s%9.1f ms%s\n", r.outcome(), r.name, float64(r.took.Microseconds())/1000, why)
}

// caller is a session with its properties that matter for the cases.
type caller struct {
	*asterisque.Session
	codec   string
	classic bool // over the classic protocol, which has one code for all errors of the library
}

// runMatrix runs all cases over a session, one after the other, and reports each.
func runMatrix(ctx context.Context, c *caller, calls int, tell func(result)) (failed int) {
	for _, tc := range cases(calls) {
		r := result{name: tc.name}
		begin := time.Now()
		switch {
		case c.codec == "raw" && tc.raw != "":
			r.err = skipped(tc.raw)
		case c.classic && tc.classic != "":
			r.err = skipped(tc.classic)
		default:
			ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done after %v", patience))
			r.err = tc.run(ctx, c)
			cancel()
		}
		r.took = time.Since(begin)
		if r.outcome() == "FAILED" {
			failed++
		}
		tell(r)
	}
	return failed
}

// Reasons to leave a case out.
const (
	noNumbers  = "raw carries bytes and text, no numbers or lists"
	anyBytes   = "raw takes any bytes"
	oneCode    = "classic has one code for all errors of the library"
	noStop     = "classic has no Stop"
	noTTL      = "classic has no TTL"
	noNesting  = "classic has no form of the parent of a nested call"
	tooSmall   = "a classic message has 65,507 bytes at most"
	noPing     = "classic has no Ping"
	noDrain    = "classic has no Drain"
	noMetadata = "classic has no metadata"
	noDescribe = "classic has no form of the answers of describe and health"
	noRefusing = "classic has no form of a refusal"
)

// cases returns the matrix, in its order. The last one ends the session.
func cases(calls int) []testCase {
	return []testCase{
		{name: "unary", run: unary},
		{name: "values", run: values, raw: noNumbers},
		{name: "describe", run: describe, raw: noNumbers, classic: noDescribe},
		{name: "health", run: health, raw: noNumbers, classic: noDescribe},
		{name: "stream from the caller", run: streamFromCaller, raw: noNumbers},
		{name: "stream from the callee", run: streamFromCallee, raw: noNumbers},
		{name: "stream both ways at once", run: streamBothWays},
		{name: "stream stopped by its receiver", run: streamStopped, classic: noStop},
		{name: "call back 26 deep", run: callBackDeep},
		{name: "call backs, more than workers", run: callBacks, classic: noNesting},
		{name: "metadata", run: metadata, classic: noMetadata},
		{name: "cancel", run: cancel},
		{name: "deadline", run: deadline, classic: noTTL},
		{name: "error: no such function", run: noFunction, classic: oneCode},
		{name: "error: bad parameters", run: badParams, raw: anyBytes, classic: oneCode},
		{name: "error: Blocks nobody takes", run: blocksNobodyTakes, classic: oneCode},
		{name: "error: a bad result", run: badResult, classic: oneCode},
		{name: "error: without a code", run: withoutCode},
		{name: "error: of the application", run: ofTheApplication},
		{name: "error: each code of the protocol", run: eachCode, classic: oneCode},
		{name: "error: a crash", run: panicked, classic: oneCode},
		{name: "error: too large a parameter", run: tooLargeParameter},
		{name: "error: too large a result", run: tooLargeResult, classic: oneCode},
		{name: "error: overload", run: overload, classic: noRefusing},
		{name: "1 MiB parameter", run: mebibyte, classic: tooSmall},
		{name: fmt.Sprintf("%d calls", calls), run: func(ctx context.Context, c *caller) error { return manyCalls(ctx, c, calls) }},
		{name: "ping", run: ping, classic: noPing},
		{name: "drain", run: drain, classic: noDrain},
	}
}

// equal returns an error unless got is want.
func equal(got, want any, what string) error {
	if reflect.DeepEqual(got, want) {
		return nil
	}
	return fmt.Errorf("%s: %s, and not %s", what, short(got), short(want))
}

func short(v any) string {
	s := fmt.Sprintf("%+v", v)
	if len(s) > 60 {
		return fmt.Sprintf("%.60s… (%d bytes)", s, len(s))
	}
	return s
}

// returns checks the result of a call: returns("x")(echo.Call(…)).
func returns[T any](want T) func(T, error) error {
	return func(got T, err error) error {
		if err != nil {
			return err
		}
		return equal(got, want, "the result")
	}
}

// fails returns an error unless err is an Abort with that code which is Repeatable, or is not.
func fails(err error, code asterisque.Code, repeatable bool) error {
	if err := failsAs(err, code); err != nil {
		return err
	}
	return equal(asterisque.Repeatable(err), repeatable, "repeatable")
}

func failsAs(err error, code asterisque.Code) error {
	var a *asterisque.Abort
	if !errors.As(err, &a) {
		return fmt.Errorf("it should have failed with %q: %v", code, err)
	}
	if a.Code != code {
		return fmt.Errorf("the code is not %q: %w", code, err)
	}
	return nil
}
