package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// An exchange that shuts down relays the sessions that there are for as long as they last, but not
// for ever, and cannot know what they do. So the nodes at both ends see to it.

// lookAgain is how often sessions are looked for whose handshake was under way.
const lookAgain = 200 * time.Millisecond

// seeOff lets the sessions go that run through the exchange of s, until s ends.
func (a *Agent) seeOff(s *asterisque.Session) {
	var ending sync.WaitGroup
	defer ending.Wait()
	ctx, over := context.WithCancel(a.ctx)
	defer over()
	seen := make(map[*relayed]bool)
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

// wireOf returns the Wire through an exchange that a session has now, or nil.
func wireOf(s *asterisque.Session) *relayed {
	at, _ := s.Peer().RemoteAddr.(Addr)
	return at.wire
}

// seeOff lets the session of a Wire go: one that can be resumed goes on over the next Wire, and any
// other one ends when its calls are over. New calls have another one.
func (r *relayed) seeOff(ctx context.Context, s *asterisque.Session, ending *sync.WaitGroup) {
	switch {
	case s.Resumable():
		r.Close()
	case r.dialled:
		s.Retire() // its connection ends it
	default:
		ending.Go(func() { s.Shutdown(ctx) }) // ends with ctx, or with the calls
	}
}
