package asterisque

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
)

// HealthQuery selects the parts for [CheckHealth] and [WatchHealth]. Its zero value asks for all
// known parts.
type HealthQuery struct {
	// names, of which some may be unknown; "" is the node as a whole; at most 64
	Parts []string `cbor:"1,keyasint,omitempty" json:"parts,omitempty"`
}

// CheckHealth is the function that returns the states of the parts of a program, by name. A
// requested part that the peer does not know is HealthUnknown; without a request by name, unknown
// parts are absent. The part "" is the node as a whole. The function exists only for services that
// offer it with [Service.Health]; otherwise it fails with ErrNoFunction. A node that shuts down
// rejects it, as any new call, with ErrUnavailable.
var CheckHealth = Func[HealthQuery, map[string]HealthState](65_281, "health")

// WatchHealth is the function that sends the states of the parts of a program as they change. The
// first value is sent at once and equals the answer of [CheckHealth]. Each further value has the
// parts that have changed, HealthUnknown for those that are no longer known. A caller that receives
// slowly gets the latest states, without those between. The caller sends nothing.
//
// When the session drains ([Draining]), the last value has HealthNotServing for "", unless the
// caller shuts down; then the call succeeds, so that it does not delay the shutdown. WatchHealth
// exists for the same peers as CheckHealth, and fails with the same errors. Up to four of these
// calls of a session need no worker ([Workers].Session), further ones do.
var WatchHealth = Stream[HealthQuery, struct{}, map[string]HealthState, struct{}](65_282, "health changes")

// Health offers [CheckHealth] (function 65,281) and [WatchHealth] (65,282) for the states in h to
// all peers of the service, or only to some with [WithGrantOnly]. A node that shuts down reports ""
// as not serving, whatever the state in h. Several services may have the same h. Health panics as
// [Service.Handle] does, and if h is nil.
func (s *Service) Health(h *Health, opts ...StandardOption) {
	if h == nil {
		panic(fmt.Sprintf("asterisque: Service.Health of nil at %s: make a Health with NewHealth", here()))
	}
	o := newOffer(opts)
	CheckHealth.Handle(s, h.check, standard, o.to(grantHealth))
	WatchHealth.Handle(s, h.watch, standard, o.to(grantHealth), func(h *functionHandler) { h.OnlyWaits = true })
}

// check is the handler of CheckHealth.
func (h *Health) check(ctx context.Context, q HealthQuery) (map[string]HealthState, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	s := SessionOf(ctx) // nil if an interceptor has replaced the context
	return h.now.Load().told(q.Parts, s != nil && s.calls.Drains()), nil
}

// watch is the handler of WatchHealth.
func (h *Health) watch(ctx context.Context, q HealthQuery, p *Pipe[map[string]HealthState, struct{}]) (none struct{}, err error) {
	if err := q.check(); err != nil {
		return none, err
	}
	w := healthWatch{of: h, parts: q.Parts, to: p}
	// not SessionOf, since an interceptor may have replaced the context
	w.calls = &sessionOf(p.values.Session).calls
	w.drain = w.calls.Draining()
	return none, w.run(ctx)
}

// mostPartsAsked bounds the parts that a peer may ask for by name. Each watch looks at all of them
// at each change.
const mostPartsAsked = 64

// check returns ErrBadParams if a query asks for too many parts.
func (q *HealthQuery) check() error {
	if len(q.Parts) > mostPartsAsked {
		return codec.ErrBadParams.Withf("%d parts are asked for, and %d is the most: ask for all, or more than once", len(q.Parts), mostPartsAsked)
	}
	return nil
}
