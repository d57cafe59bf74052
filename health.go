package asterisque

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/truncate"
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

// Limits of a Health.
const (
	mostParts    = 1024
	mostPartName = 128 // bytes
)

// HealthState reports whether a part of a program can do its work. Its number is sent to peers.
type HealthState uint8

const (
	HealthUnknown    HealthState = iota // not set
	HealthServing                       // the part can do its work
	HealthNotServing                    // the part cannot: callers use another node
)

var healthStates = [...]string{HealthUnknown: "unknown", HealthServing: "serving", HealthNotServing: "not serving"}

// String returns "unknown", "serving" or "not serving".
func (s HealthState) String() string {
	if int(s) < len(healthStates) {
		return healthStates[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Health holds the states of the parts of a program, by name, for peers ([Service.Health]) and for
// package healthpage. The part "" is the program as a whole. A Health is safe for concurrent use,
// and may be used before, while and after it is served.
type Health struct {
	mu  sync.Mutex // held by writers of now
	now atomic.Pointer[healthState]
}

// healthState is the state until the next change.
type healthState struct {
	states map[string]HealthState // of known parts; does not change
	next   chan struct{}          // closed at the next change
}

// NewHealth returns a Health in which the program as a whole, the part "", is serving, and no other
// part is known.
func NewHealth() *Health {
	h := new(Health)
	h.now.Store(&healthState{map[string]HealthState{"": HealthServing}, make(chan struct{})})
	return h
}

// Set sets the state of a part, and notifies all watchers. HealthUnknown removes the part. Set does
// not block.
//
// A Health has at most 1,024 parts; above that Set returns ErrTooLarge, until a part is removed.
// Set returns ErrBadParams for a name of more than 128 bytes, a name that is not UTF-8, and an
// invalid state. On error the Health does not change.
func (h *Health) Set(part string, state HealthState) error {
	switch {
	case len(part) > mostPartName:
		return codec.ErrBadParams.Withf("the name of a part has %d bytes, and %d is the most: %q…", len(part), mostPartName, truncate.Text(part, 32))
	case !utf8.ValidString(part):
		return codec.ErrBadParams.Withf("the name of a part is no UTF-8: %q", part)
	case state > HealthNotServing:
		return codec.ErrBadParams.Withf("%v of part %q is none of unknown, serving and not serving", state, part)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.now.Load()
	if was.states[part] == state {
		return nil
	}
	states := maps.Clone(was.states)
	if state == HealthUnknown {
		delete(states, part)
	} else {
		states[part] = state
	}
	if len(states) > mostParts {
		return codec.ErrTooLarge.Withf("%d parts are known, and there is no room for %q: let the state of one be unknown", mostParts, part)
	}
	h.now.Store(&healthState{states, make(chan struct{})})
	close(was.next)
	return nil
}

// States returns the states of the known parts, in a map that the caller owns. A shutdown of a node
// does not change them: see [Node.Draining].
func (h *Health) States() map[string]HealthState { return maps.Clone(h.now.Load().states) }

// told returns the states of parts, or of all known parts if there are none. drains reports that
// the node shuts down.
func (n *healthState) told(parts []string, drains bool) map[string]HealthState {
	told := make(map[string]HealthState, max(len(parts), 1))
	for _, part := range parts {
		told[part] = n.states[part]
	}
	if len(parts) == 0 {
		maps.Copy(told, n.states)
		told[""] = n.states[""]
	}
	if _, ok := told[""]; ok && drains {
		told[""] = HealthNotServing
	}
	return told
}

// healthWatch is one call of WatchHealth.
type healthWatch struct {
	of    *Health // fixed, as the next two
	parts []string
	to    *Pipe[map[string]HealthState, struct{}]
	calls *call.Calls // of the session
	drain <-chan struct{}

	told map[string]HealthState // states sent so far; owned by the handler; nil: none
}

// run sends changes until the session drains.
func (w *healthWatch) run(ctx context.Context) error {
	for {
		over := closed(w.drain)
		now := w.of.now.Load()
		if err := w.tell(now.told(w.parts, w.calls.Drains()), over); err != nil && !over && !closed(w.drain) {
			return err
		}
		if over {
			return nil
		}
		select {
		case <-now.next:
		case <-w.drain:
		case <-w.to.p.Done(): // also if an interceptor has replaced the context
			return w.to.p.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell sends the changes to states, and keeps states. If the pipe is full, it waits until the
// session drains, or fails if last is set.
func (w *healthWatch) tell(states map[string]HealthState, last bool) error {
	news := states
	if w.told != nil {
		if news = newsOf(w.told, states); len(news) == 0 {
			return nil
		}
	}
	var err error
	if last {
		err = w.to.post(news)
	} else {
		err = w.to.Send(drainContext{context.Background(), w.drain}, news)
	}
	if err == nil {
		w.told = states
	}
	return err
}

// newsOf returns the states that have changed. Absent parts are unknown.
func newsOf(were, are map[string]HealthState) map[string]HealthState {
	news := make(map[string]HealthState)
	for part, state := range are {
		if were[part] != state {
			news[part] = state
		}
	}
	for part, state := range were {
		if _, ok := are[part]; !ok && state != HealthUnknown {
			news[part] = HealthUnknown
		}
	}
	return news
}

// drainContext is a context that ends when a session drains. The end of the call does not end it,
// but ends all waits on the pipe.
type drainContext struct {
	context.Context
	drain <-chan struct{}
}

// Done implements context.Context.
func (c drainContext) Done() <-chan struct{} { return c.drain }

// Err implements context.Context.
func (c drainContext) Err() error {
	if closed(c.drain) {
		return context.Canceled
	}
	return nil
}

// closed reports whether a channel without values is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
