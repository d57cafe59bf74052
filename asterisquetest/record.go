package asterisquetest

import (
	"context"
	"fmt"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/priority"
)

// Record is one call, as recorded by a [Recorder].
type Record struct {
	Function uint16
	Name     string // for the log; empty for an untyped outbound call
	Inbound  bool   // inbound call; otherwise outbound
	Blocks   bool   // it carries Blocks, or may do so

	// The parameters. Params is of the type that the function declares, and not a copy; an untyped
	// call has a copy of the bytes in RawParams instead.
	Params    any
	RawParams []byte

	Metadata asterisque.Metadata // not a copy
	Priority priority.Priority
	Durable  bool
	FailFast bool
	Began    time.Time

	// The outcome, once the call is over. An outbound stream is over when its result has arrived,
	// which is recorded as bytes only; other typed calls have the value.
	Over      bool
	Took      time.Duration
	Result    any
	RawResult []byte
	Err       error
}

// recordOf returns the record of c at its beginning.
func recordOf(ctx context.Context, c *asterisque.Call) Record {
	rec := Record{
		Function: c.Function(), Name: c.Name(), Inbound: c.Inbound(), Blocks: c.Blocks(), Params: c.Params(),
		Metadata: c.Metadata(ctx), Priority: c.Priority(), Durable: c.Durable(), FailFast: c.FailFast(), Began: time.Now(),
	}
	if !c.Typed() {
		raw, _ := c.RawParams() // they are available without encoding
		rec.RawParams = append([]byte{}, raw...)
	}
	return rec
}

// rawResult returns a copy of the result of an untyped call.
func rawResult(c *asterisque.Call) []byte {
	if c.Typed() {
		return nil
	}
	raw, _ := c.RawResult() // it is available without encoding
	return append([]byte{}, raw...)
}

// String returns the call in a line, such as
//
//	made function 10 "greet" with "asterisk": "hello, asterisk"
func (c Record) String() string {
	did := "made"
	if c.Inbound {
		did = "served"
	}
	s := fmt.Sprintf("%s %s with %s", did, functionOf(c.Function, c.Name), value(c.Params, c.RawParams))
	switch {
	case !c.Over:
		return s + ", which runs"
	case c.Err != nil:
		return s + ": " + c.Err.Error()
	}
	return s + ": " + value(c.Result, c.RawResult)
}
