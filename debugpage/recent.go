package debugpage

import (
	"bytes"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// mostRecent is how many events a Recent keeps, and longestText the maximum bytes of a text.
const (
	mostRecent  = 100
	longestText = 256
)

// Recent keeps the last 100 session events for pages: a session has begun or ended, was suspended
// or resumed, has reached a limit, or has dropped a message. The zero Recent is ready to use for
// any number of nodes, and is safe for concurrent use:
//
//	recent := new(debugpage.Recent)
//	node := asterisque.NewNode(asterisque.WithHooks(recent.Hooks()))
//	mux.Handle("/debug/asterisque", recent.Handler(node))
type Recent struct {
	mu     sync.Mutex
	events []sessionEvent // guarded by mu, the oldest first
}

// sessionEvent is one event of a session.
type sessionEvent struct {
	Time    time.Time `json:"time"`
	Session string    `json:"session"` // its id
	Peer    string    `json:"peer"`    // the id that the peer gave itself
	What    string    `json:"what"`
	Why     string    `json:"why,omitempty"`
}

// Hooks returns the hooks that record events, for [asterisque.WithHooks].
func (r *Recent) Hooks() asterisque.Hooks {
	return asterisque.Hooks{
		SessionBegun: func(s *asterisque.Session) { r.add(s, "begun", "") },
		SessionEnded: func(s *asterisque.Session, cause error) { r.add(s, "ended", cause.Error()) },
		SessionAway:  func(s *asterisque.Session, cause error) { r.add(s, "away", cause.Error()) },
		SessionBack:  func(s *asterisque.Session) { r.add(s, "back", "") },
		LimitChanged: func(s *asterisque.Session, d asterisque.Direction, state limits.State) {
			if state >= limits.Soft {
				r.add(s, "limit reached", d.String()+" "+state.String())
			}
		},
		Dropped: func(s *asterisque.Session, drop asterisque.Drop) { r.add(s, "dropped", drop.Reason.String()) },
	}
}

// Handler is like the function [Handler], and also shows the recorded events, the newest first.
func (r *Recent) Handler(nodes ...*asterisque.Node) http.Handler {
	h := newHandler(nodes)
	h.recent = r
	return h
}

func (r *Recent) add(s *asterisque.Session, what, why string) {
	e := sessionEvent{Time: time.Now(), Session: s.ID().String(), Peer: s.Peer().ID, What: what, Why: why[:min(len(why), longestText)]}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.events) == mostRecent {
		r.events = slices.Delete(r.events, 0, 1)
	}
	r.events = append(r.events, e)
}

// list returns the recorded events, the newest first. r may be nil.
func (r *Recent) list() []sessionEvent {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	list := slices.Clone(r.events)
	r.mu.Unlock()
	slices.Reverse(list)
	return list
}

// printRecent writes the recorded events.
func printRecent(b *bytes.Buffer, list []sessionEvent) {
	if len(list) == 0 {
		return
	}
	b.WriteString("\nRECENTLY\n")
	t := newTable("time", "session", "peer", "what", "why")
	for _, e := range list {
		t.row(e.Time.UTC().Format("15:04:05.000"), e.Session[:8], plain(e.Peer), e.What, plain(e.Why))
	}
	t.print(b)
}
