package pool

import (
	"context"
	"errors"
	"time"

	"github.com/asterisque-go/asterisque"
)

// heed watches the health of the server, on one session after the other, until the connection ends.
// Until the first report of a session the server counts as serving. So does a server without a
// health service.
func (s *server) heed() {
	ctx := s.pool.ctx
	for times := 0; s.conn.Err() == nil; times++ {
		session := s.awaitSession()
		if session == nil {
			return
		}
		begin := time.Now()
		err := s.watch(ctx, session)
		if errors.Is(err, asterisque.ErrNoFunction) || errors.Is(err, asterisque.ErrUnauthorized) {
			s.setUnwell(false)
			s.until(session.Done(), 0) // the server of the next session may have a health service
		}
		if !s.stillOn(session) {
			s.setUnwell(false)
			times = -1 // a new session is independent, and the connection already limits its rate
			continue
		}
		if time.Since(begin) >= longestTrial {
			times = 0
		}
		s.until(session.Done(), growing(times, firstRest, longestRest))
	}
}

// watch follows the health reports on one session.
func (s *server) watch(ctx context.Context, session *asterisque.Session) error {
	call, err := asterisque.WatchHealth.Open(ctx, session, asterisque.HealthQuery{Parts: s.pool.how.Health})
	if err != nil {
		return err
	}
	defer call.Abort(asterisque.ErrCanceled)
	states := make(map[string]asterisque.HealthState)
	for {
		news, err := call.Recv(ctx)
		if err != nil {
			return err
		}
		unwell := false
		for _, part := range s.pool.how.Health {
			if state, ok := news[part]; ok {
				states[part] = state
			}
			unwell = unwell || states[part] == asterisque.HealthNotServing
		}
		s.setUnwell(unwell)
	}
}

func (s *server) setUnwell(unwell bool) {
	if s.unwell.Swap(unwell) != unwell {
		s.pool.change.Signal()
	}
}

// awaitSession waits for a session, and returns nil when the connection ends.
func (s *server) awaitSession() *asterisque.Session {
	for {
		changed := s.pool.change.Next()
		if s.conn.Ready() {
			if session := s.conn.Session(); session != nil {
				return session
			}
		}
		select {
		case <-changed:
		case <-time.After(lookAgain): // OnState may block the notification
		case <-s.conn.Done():
			return nil
		}
	}
}

// until waits for c, or for d unless that is 0, or until the connection ends.
func (s *server) until(c <-chan struct{}, d time.Duration) {
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-c:
	case <-over:
	case <-s.conn.Done():
	}
}
