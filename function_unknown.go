package asterisque

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/pipe"
)

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
