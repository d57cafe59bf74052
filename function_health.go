package asterisque

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque/codec"
)

// HealthQuery says which parts [CheckHealth] and [WatchHealth] are to tell of. Its zero value asks
// for all that are known.
type HealthQuery struct {
	// by their names, of which some may be unknown there; "" is the node as a whole; at most 64
	Parts []string `cbor:"1,keyasint,omitempty" json:"parts,omitempty"`
}

// CheckHealth is the function that tells the states of the parts of a program, by their names. A
// part that the peer does not know is HealthUnknown; of parts that are not asked for by name, it is
// absent. The part "" is the node as a whole. It is there only for services that chose so with
// [Service.Health]; elsewhere it fails with ErrNoFunction. A node that shuts down takes no new
// calls, and so refuses this one too, with ErrUnavailable.
var CheckHealth = Func[HealthQuery, map[string]HealthState](65_281, "health")

// WatchHealth is the function that tells the states of the parts of a program as they change. The
// first value that the callee sends has all that [CheckHealth] would tell, at once, and each
// further one those parts that have changed, HealthUnknown for those that it does not know any
// more. A caller that receives slowly gets the latest states, and not those between. The caller
// sends nothing.
//
// When the session drains ([Draining]), the last value says that "" is HealthNotServing, unless it
// is the caller that shuts down; then the call ends by itself, well, so that it holds nothing up.
// It is there for whom CheckHealth is, and fails with the same errors. Up to four of these calls of
// a session need no worker ([Workers].Session), further ones do.
var WatchHealth = Stream[HealthQuery, struct{}, map[string]HealthState, struct{}](65_282, "health changes")

// Health lets peers ask, with [CheckHealth] (function 65,281) and [WatchHealth] (65,282), for the
// states in h: all peers to which the service is offered, unless [WithGrantOnly] keeps it for some.
// In addition a node tells by itself that it shuts down: "" is not serving then, whatever h says.
// Several services may have the same h. It panics as [Service.Handle] does, and if h is nil.
func (s *Service) Health(h *Health, opts ...StandardOption) {
	if h == nil {
		panic(fmt.Sprintf("asterisque: Service.Health of nil at %s: make a Health with NewHealth", here()))
	}
	o := newOffer(opts)
	CheckHealth.Handle(s, h.check, standard, o.to(grantHealth))
	WatchHealth.Handle(s, h.watch, standard, o.to(grantHealth), func(h *handler) { h.onlyWaits = true })
}

// check is the handler of CheckHealth.
func (h *Health) check(ctx context.Context, q HealthQuery) (map[string]HealthState, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	s := SessionOf(ctx) // nil if an interceptor has put another context in place
	return h.now.Load().told(q.Parts, s != nil && s.table.drainsHere()), nil
}

// watch is the handler of WatchHealth.
func (h *Health) watch(ctx context.Context, q HealthQuery, p *Pipe[map[string]HealthState, struct{}]) (none struct{}, err error) {
	if err := q.check(); err != nil {
		return none, err
	}
	w := healthWatch{of: h, parts: q.Parts, to: p}
	// not SessionOf, since an interceptor may have put another context in place
	w.table = &p.values.session.(*Session).table
	w.drain = w.table.draining()
	return none, w.run(ctx)
}

// mostPartsAsked is how many parts a peer may ask for by name. Each watch looks at all of them with
// each change.
const mostPartsAsked = 64

// check returns ErrBadParams if a query asks for more than there can be.
func (q *HealthQuery) check() error {
	if len(q.Parts) > mostPartsAsked {
		return codec.ErrBadParams.Withf("%d parts are asked for, and %d is the most: ask for all, or more than once", len(q.Parts), mostPartsAsked)
	}
	return nil
}
