package asterisque

import (
	"slices"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// looks is how often a session is looked at in its interval.
const looks = 8

// rounds look after the sessions of a node. Those that are looked at equally often share a timer.
// What a peer asks for makes its own session looked at more often, and no other.
type rounds struct {
	aways *aways // of the node; fixed

	mu sync.Mutex
	// by how often they look; guarded by mu, like the sessions of each and their places
	all map[time.Duration]*round
}

// round looks after some sessions, each of which knows its place.
type round struct {
	sessions []*Session
	timer    *time.Timer // calls lookAround
	runs     bool        // it does until it finds no session
}

// every returns how often the session is to be looked at. There are few different values: half of
// what the node itself needs, half of that, and so on, whatever peers ask for.
func (l *liveness) every(cfg *config) time.Duration {
	every := min(cfg.grace(), cfg.writeTimeout)
	if l.interval > 0 {
		every = min(every, cfg.pingInterval)
	}
	every /= looks
	for l.interval > 0 && every > l.interval/looks {
		every /= 2
	}
	return max(every, 1)
}

// add looks after s from now on, remove no longer.
func (w *rounds) add(s *Session) {
	every := s.live.every(s.cfg)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = make(map[time.Duration]*round)
	}
	its := w.all[every]
	if its == nil {
		its = &round{runs: true}
		its.timer = time.AfterFunc(every, func() { w.lookAround(its, every) })
		w.all[every] = its // for ever: there are few
	}
	if !its.runs {
		its.runs = true
		its.timer.Reset(every)
	}
	s.live.place = len(its.sessions)
	its.sessions = append(its.sessions, s)
}

func (w *rounds) remove(s *Session) {
	every := s.live.every(s.cfg)
	w.mu.Lock()
	defer w.mu.Unlock()
	its := w.all[every]
	last := len(its.sessions) - 1
	its.sessions[last].live.place = s.live.place
	its.sessions[s.live.place], its.sessions[last] = its.sessions[last], nil
	its.sessions = its.sessions[:last]
}

// end is called when the last session has been removed, and no other one will be added.
func (w *rounds) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, its := range w.all {
		its.timer.Stop()
	}
}

// lookAround looks at all sessions of its, and does so again as long as there are any.
func (w *rounds) lookAround(its *round, every time.Duration) {
	defer w.lookAgain(its, every) // whatever a Wire does that is asked
	for _, s := range w.of(its) {
		if s.away.Load() {
			s.live.part.Tell(0) // what was arriving has gone with its Wire
			w.aways.look(s)
		} else if !guard.Run(s.cfg.log, "wire", func() { s.live.look(s, s.shared.now()) }, "session", s) {
			s.fail(&Abort{Code: codec.SessionClosed, Message: "the wire failed: it panicked"})
		}
	}
}

func (w *rounds) lookAgain(its *round, every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if its.runs = len(its.sessions) > 0; its.runs {
		its.timer.Reset(every)
	}
}

func (w *rounds) of(its *round) []*Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(its.sessions)
}
