package agent

import (
	"context"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque"
)

// An exchange that shuts down relays the sessions that there are for as long as they last, but not
// for ever, and cannot know what they do. So the nodes at both ends see to it.

// lookAgain is how often sessions are looked for whose handshake was under way.
const lookAgain = 200 * time.Millisecond

// seeOff lets the sessions go that run through the exchange of s, until s ends. Those that can be
// resumed lose their Wire, and go on through another exchange; the others are shut down: their
// peers make new calls elsewhere, and those without a call end at once.
func (a *Agent) seeOff(s *asterisque.Session) {
	var ending sync.WaitGroup
	defer ending.Wait()
	ctx, over := context.WithCancel(a.ctx)
	defer over()
	seen := make(map[*relayed]bool)
	for ctx.Err() == nil {
		for _, inner := range a.node.Sessions() {
			at, ok := inner.Peer().RemoteAddr.(Addr)
			if !ok || at.wire == nil || at.wire.through != s || seen[at.wire] {
				continue
			}
			seen[at.wire] = true
			if inner.Resumable() {
				at.wire.Close()
				continue
			}
			ending.Go(func() { inner.Shutdown(ctx) }) // ends with ctx, or with the calls
		}
		select {
		case <-s.Done():
			return
		case <-a.ctx.Done():
			return
		case <-time.After(lookAgain):
		}
	}
}
