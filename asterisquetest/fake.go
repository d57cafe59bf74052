package asterisquetest

import (
	"context"
	"sync"
	"testing"

	"github.com/asterisque-go/asterisque"
)

// Fake is a Caller without a session. It answers calls by functions of the test, on the goroutine
// of the caller and with the values themselves, without a codec, a wire or limits. So an answer may
// be any error, unchanged, such as that of a lost session, or of a call that certainly did not run
// ([asterisque.Abort].Ran). All other calls, streams and untyped calls included, go to Otherwise;
// without that, they fail the test and the call.
//
// A [Peer] also answers streams and untyped calls, and encodes its answers.
type Fake struct {
	// Otherwise makes the calls without an answer here, for example on a session or a [Peer]. It is
	// set before the first call.
	Otherwise asterisque.Caller

	complaints *backgroundErrors

	mu      sync.Mutex
	answers map[uint16]fakeAnswer // guarded by mu
}

// fakeAnswer answers a call, or reports false for a call of another kind.
type fakeAnswer func(ctx context.Context, c *asterisque.Call) (ok bool, err error)

// NewFake returns a Fake without answers.
func NewFake(t testing.TB) *Fake {
	return &Fake{complaints: newComplaints(t), answers: map[uint16]fakeAnswer{}}
}

// Answer sets the function that answers calls of f on fake, in place of an earlier answer. with may
// be called by several goroutines at the same time.
func Answer[P, R any](fake *Fake, f asterisque.Function[P, R], with func(ctx context.Context, params P) (R, error)) {
	fake.set(f.Number(), func(ctx context.Context, c *asterisque.Call) (bool, error) {
		params, ok := paramsOf[P](c)
		if !ok || c.Blocks() {
			return false, nil
		}
		result, err := with(ctx, params)
		if err != nil {
			return true, err
		}
		return true, c.SetResult(result)
	})
}

// Fail makes all calls of a function, streams and untyped ones included, end with err: with err
// itself if it is an *[asterisque.Abort], else with one that has it as the cause. A nil err removes
// the answer.
func (f *Fake) Fail(function Numbered, err error) {
	if err == nil {
		f.set(function.Number(), nil)
		return
	}
	f.set(function.Number(), func(context.Context, *asterisque.Call) (bool, error) { return true, err })
}

// Numbered is a typed function: an [asterisque.Function] or an [asterisque.StreamFunction].
type Numbered interface{ Number() uint16 }

func (f *Fake) set(function uint16, a fakeAnswer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[function] = a
}

// Invoke implements [asterisque.Caller]. A call with an ended context is not answered.
func (f *Fake) Invoke(ctx context.Context, c *asterisque.Call) error {
	if err := ctx.Err(); err != nil {
		return c.Refuse(err)
	}
	f.mu.Lock()
	answer := f.answers[c.Function()]
	f.mu.Unlock()
	if answer != nil {
		if ok, err := answer(ctx, c); ok {
			return err
		}
	}
	if f.Otherwise != nil {
		return f.Otherwise.Invoke(ctx, c)
	}
	f.complaints.add("%s is called, for which the fake has no answer, with %s", kindOf(c), given(c))
	return c.Refuse(asterisque.ErrNoFunction.Withf("the fake has no answer for %s", kindOf(c)))
}

// kindOf names the function of a call, and the kind of the call.
func kindOf(c *asterisque.Call) string {
	f := functionOf(c.Function(), c.Name())
	switch {
	case c.Blocks():
		return f + ", as one that carries Blocks,"
	case !c.Typed():
		return f + ", untyped,"
	}
	return f
}

// given returns the parameters of a call in readable form.
func given(c *asterisque.Call) string {
	if c.Typed() {
		return value(c.Params(), nil)
	}
	raw, _ := c.RawParams() // they are available without encoding
	return value(nil, raw)
}

// paramsOf returns the parameters of a typed call, or reports false if they are of another type.
func paramsOf[P any](c *asterisque.Call) (params P, ok bool) {
	if !c.Typed() {
		return params, false
	}
	return as[P](c.Params())
}
