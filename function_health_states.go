package asterisque

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

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
