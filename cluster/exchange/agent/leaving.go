package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// An exchange that shuts down relays the present sessions until they end, within a time limit, and
// does not know their calls. So the nodes at both ends drain them.

// lookAgain is the interval of searches for sessions that were still in their handshake.
const lookAgain = 200 * time.Millisecond

// seeOff drains the sessions that run through the exchange of s, until s ends.
func (a *Agent) seeOff(s *asterisque.Session) {
	var ending sync.WaitGroup
	defer ending.Wait()
	ctx, over := context.WithCancel(a.ctx)
	defer over()
	seen := make(map[*relayedWire]bool)
	for again := time.Tick(lookAgain); ; {
		for _, inner := range a.sessionsThrough(s) {
			if w := wireOf(inner); w != nil && !seen[w] {
				seen[w] = true
				w.seeOff(ctx, inner, &ending)
			}
		}
		select {
		case <-again:
		case <-s.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

// sessionsThrough returns the sessions that run through the exchange of s.
func (a *Agent) sessionsThrough(s *asterisque.Session) []*asterisque.Session {
	return slices.DeleteFunc(a.node.Sessions(), func(inner *asterisque.Session) bool {
		w := wireOf(inner)
		return w == nil || w.through != s
	})
}

// wireOf returns the present Wire of a session through an exchange, or nil.
func wireOf(s *asterisque.Session) *relayedWire {
	at, _ := s.Peer().RemoteAddr.(Addr)
	return at.wire
}

// seeOff drains the session of a Wire. A resumable session continues over its next Wire. Any other
// session ends when its calls have ended, and new calls use another session.
func (r *relayedWire) seeOff(ctx context.Context, s *asterisque.Session, ending *sync.WaitGroup) {
	switch {
	case s.Resumable():
		r.Close()
	case r.dialled:
		s.Retire() // its connection ends it
	default:
		ending.Go(func() { s.Shutdown(ctx) }) // ends with ctx, or with the calls
	}
}
