package asterisque

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

// callHandler describes a function of this side for its calls. It does not change.
type callHandler struct {
	number uint16
	name   string
	grants uint8 // the function exists only for peers that were granted all of these bits
	// its calls only wait, and need no worker of the session: see dispatch.Job
	onlyWaits   bool
	blocks      bool // the call carries Blocks, and has a pipe
	inline      bool // runs on the reader
	borrows     bool // keeps no part of its parameters
	intercepted bool // interceptors of the function, or of its service, are around it
	// type of the decoded parameters, of which no part is kept unless the codec lends it; nil if
	// they are not decoded
	params reflect.Type
	free   int                        // bytes of parameters that need no estimate: see sizing.Free
	limit  *dispatch.ConcurrencyLimit // nil: unlimited
	key    *keyedFunction             // nil: calls have no keys
	meter  *functionMeter
	// registration of the function, for its interceptors
	registration any

	// serve runs one call with the context for its handler. The result may be in w, and is sent
	// before w is used again.
	serve func(ctx context.Context, c handlerCall, w *dispatch.Workspace) (result []byte, err error)
}

// callFunctions are the functions of a service that is served.
type callFunctions struct { // fixed
	// by number: Go finds keys of 32 bits twice as fast as those of 16
	byNumber map[uint32]*callHandler
	unknown  *callHandler // of functions below firstStandard that are not in byNumber; nil without
}

// firstStandard is the first number of the standard functions, which are the same for all programs:
// section 15 of spec/protocol.md lists them.
const firstStandard = 65_280

// find returns the handler of a function, or nil.
func (f *callFunctions) find(function uint16) *callHandler {
	if h := f.byNumber[uint32(function)]; h != nil || function >= firstStandard {
		return h
	}
	return f.unknown
}

// handlerCall is the view of a peer's call for the handler of its function.
type handlerCall interface {
	// untyped returns the pipe, or nil if the call takes no Blocks.
	untyped() *pipe.Pipe

	// rawParams returns the parameters as they arrived.
	rawParams() []byte

	// decodeParams decodes the parameters into v. Unless they were lent to v, they are no longer
	// needed.
	decodeParams(v any) error

	// decodedForKey returns the place of the value that was decoded for the key of the call, or
	// nil.
	decodedForKey() *any

	// encodeResult encodes v into w.
	encodeResult(w *dispatch.Workspace, v any) (result []byte, err error)

	// codecOf returns the codec for the Blocks of the call.
	codecOf() *values.Coder
}

// keyedFunction is the key function of a function with keys, and the order of its calls.
type keyedFunction struct {
	// of returns the key of a call, and the value from which it was computed
	of func(values codec.Values, params []byte) (key uint64, value any, err error)
	// type of the value that value points to; nil if there is none
	params reflect.Type
	// bytes of params that need no estimate
	free int

	keys dispatch.KeyedOrder
}

// timedFirst calls of a function are timed, and then one of timedEach: reading the clock for every
// call would cost more than a hundredth of a short one.
const (
	timedFirst = 64
	timedEach  = 16
)

// functionMeter counts the calls of one function.
type functionMeter struct {
	calls  atomic.Uint64
	failed [codec.Stopped + 1]atomic.Uint64 // by code; 0: codes of applications
	queued histogram.Histogram
	ran    histogram.Histogram
}

// arrived counts a call and reports whether it is to be timed.
func (m *functionMeter) arrived() (timed bool) {
	n := m.calls.Add(1)
	return n <= timedFirst || n%timedEach == 0
}

// ended counts the outcome of a call.
func (m *functionMeter) ended(a *Abort) {
	switch {
	case a == nil:
	case a.Code > 0 && int(a.Code) < len(m.failed):
		m.failed[a.Code].Add(1)
	default:
		m.failed[0].Add(1)
	}
}
