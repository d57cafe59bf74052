package asterisque

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/cut"
)

// What a Health holds at most.
const (
	mostParts    = 1024
	mostPartName = 128 // bytes
)

// HealthState says whether a part of a program can do its work. It crosses the wire as its number.
type HealthState uint8

const (
	HealthUnknown    HealthState = iota // nobody has said
	HealthServing                       // it can
	HealthNotServing                    // it cannot: callers turn to others
)

var healthStates = [...]string{HealthUnknown: "unknown", HealthServing: "serving", HealthNotServing: "not serving"}

// String returns "unknown", "serving" or "not serving".
func (s HealthState) String() string {
	if int(s) < len(healthStates) {
		return healthStates[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Health holds the states of the parts of a program, by their names, for peers ([Service.Health])
// and for package healthpage. The part "" is the program as a whole. It is safe for concurrent use,
// and may be used before, while and after it is served.
type Health struct {
	mu  sync.Mutex // held by those who change now
	now atomic.Pointer[healthNow]
}

// healthNow is what is so until the next change.
type healthNow struct {
	states map[string]HealthState // of parts that are known; does not change
	next   chan struct{}          // closed when there is something newer
}

// NewHealth returns a Health in which the program as a whole, the part "", is serving, and nothing
// else is known.
func NewHealth() *Health {
	h := new(Health)
	h.now.Store(&healthNow{map[string]HealthState{"": HealthServing}, make(chan struct{})})
	return h
}

// Set notes the state of a part, and tells it to all who watch. HealthUnknown forgets the part. It
// does not wait.
//
// At most 1,024 parts are held; another one is ErrTooLarge, until one is forgotten. A name that has
// more than 128 bytes, or is no UTF-8, and a state that is none are ErrBadParams. With an error
// nothing has changed.
func (h *Health) Set(part string, state HealthState) error {
	switch {
	case len(part) > mostPartName:
		return codec.ErrBadParams.Withf("the name of a part has %d bytes, and %d is the most: %q…", len(part), mostPartName, cut.Text(part, 32))
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
	h.now.Store(&healthNow{states, make(chan struct{})})
	close(was.next)
	return nil
}

// States returns the states of the parts that are known, in a map that is the caller's. That a node
// shuts down is not among them: see [Node.Draining].
func (h *Health) States() map[string]HealthState { return maps.Clone(h.now.Load().states) }

// told returns the states of those parts, or of all that are known if there are none. drains says
// that the program as a whole is about to go.
func (n *healthNow) told(parts []string, drains bool) map[string]HealthState {
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
