package call

import (
	"context"
	"reflect"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/histogram"
	"github.com/asterisque-go/asterisque/internal/values"
	"github.com/asterisque-go/asterisque/pipe"
)

// Handler describes a function of this side for its calls. It does not change.
type Handler struct {
	Number uint16
	Name   string
	Grants uint8 // the function exists only for peers that were granted all of these bits
	// its calls only wait, and need no worker of the session: see dispatch.Job
	OnlyWaits   bool
	Blocks      bool // the call carries Blocks, and has a pipe
	Inline      bool // runs on the reader
	Borrows     bool // keeps no part of its parameters
	Intercepted bool // interceptors of the function, or of its service, are around it
	// type of the decoded parameters, of which no part is kept unless the codec lends it; nil if
	// they are not decoded
	Params reflect.Type
	Free   int                        // bytes of parameters that need no estimate: see sizing.Free
	Limit  *dispatch.ConcurrencyLimit // nil: unlimited
	Key    *Key                       // nil: calls have no keys
	Meter  *Meter
	// Registration of the function, for its interceptors
	Registration any

	// Serve runs one call with the context for its handler. The result may be in w, and is sent
	// before w is used again.
	Serve func(ctx context.Context, c HandlerCall, w *dispatch.Workspace) (result []byte, err error)
}

// Functions are the functions of a service that is served.
type Functions struct { // fixed
	// by number: Go finds keys of 32 bits twice as fast as those of 16
	ByNumber map[uint32]*Handler
	Unknown  *Handler // of functions below FirstStandard that are not in ByNumber; nil without
}

// FirstStandard is the first number of the standard functions, which are the same for all programs:
// section 15 of spec/protocol.md lists them.
const FirstStandard = 65_280

// find returns the handler of a function, or nil.
func (f *Functions) find(function uint16) *Handler {
	if h := f.ByNumber[uint32(function)]; h != nil || function >= FirstStandard {
		return h
	}
	return f.Unknown
}

// HandlerCall is a call of the peer as the handler of its function sees it.
type HandlerCall interface {
	// Pipe returns the pipe, or nil if the call takes no Blocks.
	Pipe() *pipe.Pipe

	// RawParams returns the parameters as they arrived.
	RawParams() []byte

	// DecodeParams decodes the parameters into v. Unless they were lent to v, they are no longer
	// needed.
	DecodeParams(v any) error

	// DecodedForKey returns the place of the value that was decoded for the key of the call, or
	// nil.
	DecodedForKey() *any

	// EncodeResult encodes v into w.
	EncodeResult(w *dispatch.Workspace, v any) (result []byte, err error)

	// Coder returns the codec for the Blocks of the call.
	Coder() *values.Coder
}

// Key is the key function of a function with keys, and the order of its calls.
type Key struct {
	// KeyOf returns the key of a call, and the value from which it was computed
	KeyOf func(values codec.Values, params []byte) (key uint64, value any, err error)
	// type of the value that value points to; nil if there is none
	Params reflect.Type
	// bytes of params that need no estimate
	Free int

	Keys dispatch.KeyedOrder
}

// timedFirst calls of a function are timed, and then one of timedEach: reading the clock for every
// call would cost more than a hundredth of a short one.
const (
	timedFirst = 64
	timedEach  = 16
)

// Meter counts the calls of one function.
type Meter struct {
	Calls  atomic.Uint64
	Failed [codec.Stopped + 1]atomic.Uint64 // by code; 0: codes of applications
	Queued histogram.Histogram
	Ran    histogram.Histogram
}

// arrived counts a call and reports whether it is to be timed.
func (m *Meter) arrived() (timed bool) {
	n := m.Calls.Add(1)
	return n <= timedFirst || n%timedEach == 0
}

// ended counts the outcome of a call.
func (m *Meter) ended(a *codec.Abort) {
	switch {
	case a == nil:
	case a.Code > 0 && int(a.Code) < len(m.Failed):
		m.Failed[a.Code].Add(1)
	default:
		m.Failed[0].Add(1)
	}
}
