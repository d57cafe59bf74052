package asterisque

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/pipe"
)

// Service is a set of functions, by number, that a node offers to its peers. Its functions are
// registered, or removed, before it is served: before its node dials, accepts or listens for the
// first time, or before [Access].Accept grants it for the first time. Later it is a mistake of the
// program, which panics where it is made, and so are two functions of one number and a nil handler;
// the panic names both places. To offer something else from some moment on, make another Service
// and grant it. It is safe for concurrent use, and several nodes may serve it. The zero Service has
// no functions yet.
type Service struct {
	mu       sync.Mutex               // held by writers
	handlers atomic.Pointer[handlers] // nil without
	others   atomic.Pointer[handler]  // of the functions that handlers does not have; nil without
	served   string                   // guarded by mu; who serves it and where; empty: nobody yet
	wish     schemaWish               // guarded by mu; of what Describe tells
	around   []Interceptor            // guarded by mu; around all functions
}

// handlers has functions by their numbers. Each call looks for one, and Go finds keys of 32 bits
// twice as fast as those of 16.
type handlers map[uint32]*handler

// NewService returns a Service without functions.
func NewService() *Service { return new(Service) }

// all returns the functions. Nobody changes them.
func (s *Service) all() handlers {
	if m := s.handlers.Load(); m != nil {
		return *m
	}
	return nil
}

// Handle registers h for the function number function, under a name for people. It is the untyped
// way, beside [Func] and [Stream]. It panics if the number is taken, if h is nil, and while the
// service is served: see [Service]. h gets the parameters as they came, and may send and receive
// Blocks on p until it returns. What it returns ends the call: result, which h must not change
// afterwards, or an error, of which the caller gets code, message and detail if it is an *[Abort],
// and otherwise the text with code Failed, unless [WithPrivateErrors] keeps it. Of the message at
// most 1,024 bytes cross; a detail that the caller does not take in one message with it
// ([Limits].MaxMessage) is left out, and the code always crosses.
//
// ctx ends when the caller gives up, its deadline passes, or the session ends. Every call runs h on
// a goroutine of its own; [SessionOf] finds the session, to call back on. A panic fails the call
// with ErrPanicked, and so does a handler that ends its goroutine, as t.FailNow does.
func (s *Service) Handle(function uint16, name string, h func(ctx context.Context, p *pipe.Pipe, params []byte) (result []byte, err error), opts ...HandlerOption) {
	checkHandler(function, name, h == nil)
	s.set(function, opts, untypedHandler(name, h))
}

func untypedHandler(name string, h func(ctx context.Context, p *pipe.Pipe, params []byte) ([]byte, error)) *handler {
	return &handler{
		name:   name,
		blocks: true,
		serve: func(ctx context.Context, c handledCall, _ *workspace) ([]byte, error) {
			return h(ctx, c.untyped(), c.rawParams())
		},
	}
}

// Intercept puts interceptors around the calls of all functions of the service, registered before
// or after, the first one outermost. It panics if one of them is nil, and while the service is
// served: see [Service]. See [Interceptor] for who else may stand around them.
func (s *Service) Intercept(around ...Interceptor) {
	checkInterceptors("Service.Intercept", around)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served != "" {
		panic(fmt.Sprintf("asterisque: Service.Intercept at %s, while the Service is served, %s: do it before the first session", here(), s.served))
	}
	s.around = append(s.around, around...)
}

// Remove removes a function, of which there need not be one. It panics while the service is served:
// see [Service].
func (s *Service) Remove(function uint16) {
	s.change(func(m handlers) {
		name := ""
		if h := m[uint32(function)]; h != nil {
			name = h.name
		}
		s.checkUnserved(function, name, "removed")
		delete(m, uint32(function))
	})
}

func (s *Service) set(function uint16, opts []HandlerOption, h *handler) {
	for _, o := range opts {
		o(h)
	}
	h.number, h.place, h.meter = function, here(), new(functionMeter)
	h.info = FunctionInfo{Number: function, Name: h.name, Signature: h.types.String()}
	for {
		w, ok := s.register(h)
		if ok {
			return
		}
		h.describe(w)
	}
}

// register adds h, unless it has first to be described as w says.
func (s *Service) register(h *handler) (w schemaWish, ok bool) {
	s.change(func(m handlers) {
		s.checkUnserved(h.number, h.name, "registered")
		checkNumber(h.number, h, m[uint32(h.number)])
		w, ok = s.wish, h.described || s.wish.schemas == nil
		if ok {
			m[uint32(h.number)] = h
		}
	})
	return w, ok
}

// change changes a copy of the functions, for those who look at them meanwhile. f may panic.
func (s *Service) change(f func(handlers)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := make(handlers)
	maps.Copy(m, s.all())
	f(m)
	s.handlers.Store(&m)
}

// find returns the handler of a function, or nil.
func (s *Service) find(function uint16) *handler {
	if h := s.all()[uint32(function)]; h != nil {
		return h
	}
	return s.other(function)
}

// Functions lists what the service offers, by number.
func (s *Service) Functions() []FunctionInfo {
	m := s.all()
	list := make([]FunctionInfo, 0, len(m))
	for _, n := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[n].info)
	}
	return list
}

// Stats tells of each function, by number, how its calls went. It costs the calls nothing.
func (s *Service) Stats() []FunctionStats {
	m := s.all()
	list := make([]FunctionStats, 0, len(m))
	for _, n := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[n].meter.stats(uint16(n), m[n].name))
	}
	return list
}

// checkUnserved panics if the service has begun to be served. what happens to the function now.
func (s *Service) checkUnserved(function uint16, name, what string) {
	if s.served != "" {
		panic(fmt.Sprintf("asterisque: function %d %q is %s at %s, while its Service is served, %s: "+
			"do it before the first session, or make another Service and let Access.Accept grant that",
			function, name, what, here(), s.served))
	}
}

// serve notes that sessions use the service from now on, so that it changes no more. by says who
// serves it, and where.
func (s *Service) serve(by, place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served == "" {
		s.served = by + " at " + place
		for _, h := range s.all() {
			h.intercept(s.around)
		}
		if o := s.others.Load(); o != nil {
			o.intercept(s.around)
		}
	}
}
