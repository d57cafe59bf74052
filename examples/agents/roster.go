package main

import (
	"maps"
	"slices"
	"sync"

	"github.com/asterisque-go/asterisque"
)

// roster has the sessions of one node by the names of their agents.
type roster struct {
	mu       sync.Mutex
	sessions map[string]*asterisque.Session // guarded by mu
}

func newRoster() *roster { return &roster{sessions: make(map[string]*asterisque.Session)} }

// hooks returns the hooks with which a node keeps the roster. An agent that reconnects may do so
// before its previous session has ended: the new one counts.
func (r *roster) hooks() asterisque.Hooks {
	return asterisque.Hooks{
		SessionBegun: func(s *asterisque.Session) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sessions[s.Peer().Subject] = s
		},
		SessionEnded: func(s *asterisque.Session, _ error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if agent := s.Peer().Subject; r.sessions[agent] == s {
				delete(r.sessions, agent)
			}
		},
	}
}

// session returns that of an agent, or nil.
func (r *roster) session(agent string) *asterisque.Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[agent]
}

// agents returns the names of all connected agents.
func (r *roster) agents() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.sessions))
}

func (r *roster) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}
