package asterisque

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/histogram"
	"github.com/asterisque-go/asterisque/pipe"
)

// Service is a set of functions, by number, that a node offers to its peers. Its functions are
// registered, or removed, before it is served: before its node dials, accepts or listens for the
// first time, or before [Access].Accept grants it for the first time. A later change is a
// programming error and panics, and so are two functions of one number and a nil handler; the panic
// names both places. To offer other functions later, make another Service and grant that. A Service
// is safe for concurrent use, and several nodes may serve it. The zero Service has no functions.
type Service struct {
	mu       sync.Mutex                      // held by writers
	handlers atomic.Pointer[handlerTable]    // nil without
	others   atomic.Pointer[functionHandler] // of functions that are not in handlers; nil without
	// guarded by mu; first node and its place; empty: not served
	served  string
	offered *call.Functions // guarded by mu; set when the service is served
	schemas schemaOption    // guarded by mu; for Describe
	around  []Interceptor   // guarded by mu; of all functions
}

// handlerTable has functions by their numbers. Each call needs a lookup, and Go finds keys of 32
// bits twice as fast as those of 16.
type handlerTable map[uint32]*functionHandler

// NewService returns a Service without functions.
func NewService() *Service { return new(Service) }

// all returns the functions. The map must not be modified.
func (s *Service) all() handlerTable {
	if m := s.handlers.Load(); m != nil {
		return *m
	}
	return nil
}

// Handle registers h for the function number function, under a name for people. It is the untyped
// alternative to [Func] and [Stream]. Handle panics if the number is taken, if h is nil, and while
// the service is served: see [Service]. h gets the parameters as they arrived, and may send and
// receive Blocks on p until it returns.
//
// The return of h ends the call, with result, which h must not change afterwards, or with an error.
// The caller gets code, message and detail of an *[Abort]. For any other error it gets the text
// with code Failed, unless [WithPrivateErrors] hides the text. At most 1,024 bytes of the message
// are sent; a detail that exceeds the caller's [Limits].MaxMessage together with the message is
// left out; the code is always sent.
//
// ctx ends when the caller cancels, its deadline expires, or the session ends. Every call runs h on
// a goroutine of its own; [SessionOf] returns the session, to call back on. A panic fails the call
// with ErrPanicked, and so does a handler that ends its goroutine, as t.FailNow does.
func (s *Service) Handle(function uint16, name string, h func(ctx context.Context, p *pipe.Pipe, params []byte) (result []byte, err error), opts ...HandlerOption) {
	checkHandler(function, name, h == nil)
	s.set(function, opts, untypedHandler(name, h))
}

func untypedHandler(name string, h func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error)) *functionHandler {
	return &functionHandler{Handler: call.Handler{
		Name:   name,
		Blocks: true,
		Serve: func(ctx context.Context, c call.HandlerCall, _ *dispatch.Workspace) ([]byte, error) {
			return h(ctx, c.Pipe(), c.RawParams())
		},
	}}
}

// Intercept wraps the calls of all functions of the service, registered before or after, in
// interceptors, the first one outermost. It panics if an interceptor is nil, and while the service
// is served: see [Service]. [Interceptor] lists the other places for interceptors.
func (s *Service) Intercept(around ...Interceptor) {
	checkInterceptors("Service.Intercept", around)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != "" {
		panic(fmt.Sprintf("asterisque: Service.Intercept at %s, while the Service is served, %s: do it before the first session", here(), s.served))
	}
	s.around = append(s.around, around...)
}

// Remove removes a function, if it exists. It panics while the service is served: see [Service].
func (s *Service) Remove(function uint16) {
	s.change(func(m handlerTable) {
		name := ""
		if h := m[uint32(function)]; h != nil {
			name = h.Name
		}
		s.checkUnserved(function, name, "removed")
		delete(m, uint32(function))
	})
}

func (s *Service) set(function uint16, opts []HandlerOption, h *functionHandler) {
	for _, o := range opts {
		o(h)
	}
	h.Number, h.place, h.Meter = function, here(), new(call.Meter)
	h.info = FunctionInfo{Number: function, Name: h.Name, Signature: h.types.String()}
	for {
		w, ok := s.register(h)
		if ok {
			return
		}
		h.describe(w)
	}
}

// register adds h, unless its schemas have to be made first, by w.
func (s *Service) register(h *functionHandler) (w schemaOption, ok bool) {
	s.change(func(m handlerTable) {
		s.checkUnserved(h.Number, h.Name, "registered")
		checkNumber(h.Number, h, m[uint32(h.Number)])
		w, ok = s.schemas, h.described || s.schemas.schemas == nil
		if ok {
			m[uint32(h.Number)] = h
		}
	})
	return w, ok
}

// change replaces the functions by a changed copy, for concurrent readers. f may panic.
func (s *Service) change(f func(handlerTable)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := make(handlerTable)
	maps.Copy(m, s.all())
	f(m)
	s.handlers.Store(&m)
}

// Functions lists the functions of the service, by number.
func (s *Service) Functions() []FunctionInfo {
	m := s.all()
	list := make([]FunctionInfo, 0, len(m))
	for _, n := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[n].info)
	}
	return list
}

// Stats returns the outcomes of each function's calls, by number. It does not slow calls down.
func (s *Service) Stats() []FunctionStats {
	m := s.all()
	list := make([]FunctionStats, 0, len(m))
	for _, n := range slices.Sorted(maps.Keys(m)) {
		list = append(list, functionStats(m[n].Meter, uint16(n), m[n].Name))
	}
	return list
}

// checkUnserved panics if the service is served. what names the attempted change of the function.
func (s *Service) checkUnserved(function uint16, name, what string) {
	if s.served != "" {
		panic(fmt.Sprintf("asterisque: function %d %q is %s at %s, while its Service is served, %s: "+
			"do it before the first session, or make another Service and let Access.Accept grant that",
			function, name, what, here(), s.served))
	}
}

// serve records that sessions use the service from now on, so that it can no longer change. by and
// place describe its first user.
func (s *Service) serve(by, place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != "" {
		return
	}
	s.served, s.offered = by+" at "+place, &call.Functions{ByNumber: make(map[uint32]*call.Handler)}
	for n, h := range s.all() {
		s.offered.ByNumber[n] = h.offer(s.around)
	}
	if o := s.others.Load(); o != nil {
		s.offered.Unknown = o.offer(s.around)
	}
}

// functions returns the functions for the calls of sessions. The service is served already.
func (s *Service) functions() *call.Functions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offered
}

// Two functions of one number are a programming error, and so is a function that is registered or
// removed while peers call it. As with the patterns of net/http, registration panics, with both
// places.

// standard is an option of the standard functions only.
func standard(h *functionHandler) { h.standard = true }

// checkNumber panics if h has the number of a standard function without being one, or if the number
// is taken by old.
func checkNumber(function uint16, h, old *functionHandler) {
	if function >= call.FirstStandard && !h.standard {
		panic(fmt.Sprintf("asterisque: function %d %q is registered at %s, and numbers from %d on belong to the "+
			"standard functions of the protocol: give it a lower number", function, h.Name, h.place, call.FirstStandard))
	}
	if old != nil {
		panic(fmt.Sprintf("asterisque: function %d is registered twice: %q at %s, and before that %q at %s: "+
			"give one of them another number", function, h.Name, h.place, old.Name, old.place))
	}
}

// checkKey panics if missing: an option has no key function.
func checkKey(option string, missing bool) {
	if missing {
		panic(fmt.Sprintf("asterisque: %s of nil at %s: name a key, or leave the option out", option, here()))
	}
}

// checkHandler panics if missing: a function has no handler.
func checkHandler(function uint16, name string, missing bool) {
	if missing {
		panic(fmt.Sprintf("asterisque: function %d %q is registered at %s with a nil handler: "+
			"register a function that runs its calls", function, name, here()))
	}
}

// HandleUnknown registers h for all functions without a handler of their own, except for the
// numbers of standard functions (from 65,280 on). A relay forwards such calls, a fake reports them.
// p.Function is the number of the called function. Options, such as [WithConcurrency], apply to all
// of them together. [Service.Functions] and [Service.Stats] do not list them. Otherwise
// HandleUnknown is as [Service.Handle], and panics in the same cases.
func (s *Service) HandleUnknown(h func(ctx context.Context, p *pipe.Pipe, params []byte) (result []byte, err error), opts ...HandlerOption) {
	if h == nil {
		panic(fmt.Sprintf("asterisque: HandleUnknown at %s has a nil handler: register a function that runs the calls", here()))
	}
	o := untypedHandler(nameOfOthers, h)
	for _, opt := range opts {
		opt(o)
	}
	o.place, o.Meter = here(), new(call.Meter)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != "" {
		panic(fmt.Sprintf("asterisque: HandleUnknown at %s, while the Service is served, %s: do it before the first session", o.place, s.served))
	}
	if old := s.others.Load(); old != nil {
		panic(fmt.Sprintf("asterisque: HandleUnknown at %s, and before that at %s: all other functions have one handler", o.place, old.place))
	}
	s.others.Store(o)
}

// nameOfOthers is the name of functions that HandleUnknown serves.
const nameOfOthers = "others"

// FunctionStats has the outcomes of the calls of one function that this side served, over all
// sessions of its [Service].
type FunctionStats struct {
	Number uint16 `json:"number"`
	Name   string `json:"name"`
	Calls  uint64 `json:"calls"` // calls that arrived
	// by the name of the code; "application" for codes of applications
	Failed map[string]uint64 `json:"failed,omitempty"`
	Queued Latency           `json:"queued"` // from arrival to the begin on a worker
	Ran    Latency           `json:"ran"`    // from then to the return of the handler
}

// Latency holds percentiles of the timed calls: the first 64 of a function, and then every
// sixteenth. Each is at most an eighth above the exact value.
type Latency struct {
	P50   time.Duration `json:"p50_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
	Timed uint64        `json:"timed"` // number of timed calls
}

func latency(h *histogram.Histogram) Latency {
	at, n := h.Percentiles(0.5, 0.95, 0.99)
	return Latency{P50: at[0], P95: at[1], P99: at[2], Timed: n}
}

func functionStats(m *call.Meter, number uint16, name string) FunctionStats {
	f := FunctionStats{Number: number, Name: name, Calls: m.Calls.Load(), Queued: latency(&m.Queued), Ran: latency(&m.Ran)}
	for code := range m.Failed {
		n := m.Failed[code].Load()
		if n == 0 {
			continue
		}
		if f.Failed == nil {
			f.Failed = make(map[string]uint64)
		}
		name := "application"
		if code > 0 {
			name = codec.Code(code).String()
		}
		f.Failed[name] = n
	}
	return f
}
