package flowtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

const (
	patience = 2 * time.Minute        // after which a scenario counts as standing still
	between  = 200 * time.Millisecond // time between cuts
)

// setup is the configuration of a scenario.
type setup struct {
	both        []asterisque.Option // of both nodes
	here, there *asterisque.Service // services of the dialling and the accepting side; may be nil
	link        int                 // bytes per second in each direction; 0: no limit
	// the dialling side dials again, even if the session cannot be resumed
	lasting bool
}

// scenarioStage is a session with its running jobs.
type scenarioStage struct {
	testing.TB
	ctx               context.Context // of all jobs; ends with the stage
	late              <-chan struct{} // closed when the scenario has taken too long
	dialled, accepted *asterisque.Session
	conn              *asterisque.Connection // nil unless the Wire is dialled again
	sessions          atomic.Int64           // number of sessions so far
	cuts              atomic.Int64
	cut               bool // the Wire is cut repeatedly
	dialer            *dialer

	ending   sync.Once
	teardown []func() // the last one runs first
	crews    sync.WaitGroup
}

// begin connects two nodes. Everything ends with the test, or with end.
func (p scenarioPlay) begin(c setup) *scenarioStage {
	p.Helper()
	s := &scenarioStage{TB: p.TB, cut: p.cut}
	p.Cleanup(s.end)
	ctx, cancel := context.WithCancel(context.Background())
	s.ctx = ctx
	late := make(chan struct{})
	s.late = late
	timer := time.AfterFunc(patience, func() { close(late) })
	s.onEnd(s.waitForCrews) // runs last
	s.onEnd(func() { timer.Stop() })

	w := p.wires(p.TB)
	s.dialer = dialerOf(w, c.link, p.cut || c.lasting)
	accepted := make(chan *asterisque.Session, 1)
	there := p.node(c, c.there, asterisque.WithHooks(asterisque.Hooks{SessionBegun: func(sess *asterisque.Session) {
		s.sessions.Add(1)
		select {
		case accepted <- sess:
		default: // only the first session is needed
		}
	}}))
	here := p.node(c, c.here)
	s.crews.Go(func() { there.Serve(ctx, w.Listener) }) // ends with ctx
	s.onEnd(func() { there.Close() })
	s.onEnd(func() { here.Close() })
	s.onEnd(cancel)
	s.connect(here, p.cut || c.lasting)
	select {
	case s.accepted = <-accepted:
	case <-s.late:
		p.Fatalf("the other side has no session")
	}
	if p.cut {
		s.crews.Go(s.cutAllTheTime)
	}
	return s
}

func (p scenarioPlay) node(c setup, svc *asterisque.Service, opts ...asterisque.Option) *asterisque.Node {
	opts = append(opts, c.both...)
	if svc != nil {
		opts = append(opts, asterisque.WithService(svc))
	}
	if p.cut {
		opts = append(opts, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	}
	return asterisque.NewNode(opts...)
}

// connect starts the session.
func (s *scenarioStage) connect(here *asterisque.Node, again bool) {
	s.Helper()
	if again {
		var err error
		s.conn, err = here.Connect(s.ctx, "", asterisque.ReconnectConfig{First: time.Millisecond, Most: 10 * time.Millisecond, Dial: s.dialer.dial})
		require.NoError(s, err)
		s.onEnd(func() { s.conn.Close() })
		s.dialled = s.conn.Session()
		return
	}
	w, err := s.dialer.dial(s.ctx)
	require.NoError(s, err)
	s.dialled, err = here.Attach(s.ctx, w)
	require.NoError(s, err)
}

// cutAllTheTime cuts the Wire repeatedly until the stage ends.
func (s *scenarioStage) cutAllTheTime() {
	for wait := between / 10; pause(s.ctx, wait) == nil; wait = between {
		// less at first, since some scenarios are short
		s.dialer.cut()
		s.cuts.Add(1)
	}
}

// onEnd registers f to run at the end, before the functions registered earlier.
func (s *scenarioStage) onEnd(f func()) { s.teardown = append(s.teardown, f) }

// end ends everything, and waits for it.
func (s *scenarioStage) end() {
	s.ending.Do(func() {
		for i := len(s.teardown) - 1; i >= 0; i-- {
			s.teardown[i]()
		}
	})
}

// waitForCrews waits for all goroutines of the stage after the end of its context.
func (s *scenarioStage) waitForCrews() {
	ended := make(chan struct{})
	go func() { s.crews.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(patience):
		s.Errorf("calls continue after the end of their context and of their session")
	}
}

// report describes the resources that both sessions hold.
func (s *scenarioStage) report() string {
	var b strings.Builder
	for i, sess := range []*asterisque.Session{s.dialled, s.accepted} {
		stats, err := json.Marshal(sess.Stats())
		if err != nil {
			stats = fmt.Appendf(nil, "%+v", sess.Stats())
		}
		fmt.Fprintf(&b, "\n%s side: ended: %v, holds: %s", [...]string{"dialling", "accepting"}[i], sess.Err(), stats)
	}
	return b.String()
}

// until waits until count reaches of.
func (s *scenarioStage) until(what string, of int, count func() int) {
	s.Helper()
	s.wait(func() bool { return count() >= of }, func() string { return fmt.Sprintf("%s: %d of %d", what, count(), of) })
}

// wait waits until ok returns true, and otherwise fails with the description by state.
func (s *scenarioStage) wait(ok func() bool, state func() string) {
	s.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-s.late:
			s.Fatalf("after %v, %s%s", patience, state(), s.report())
		case <-s.dialled.Done():
			s.Fatalf("the session has ended, %s%s", state(), s.report())
		case <-s.accepted.Done():
			s.Fatalf("the session has ended, %s%s", state(), s.report())
		case <-tick.C:
		}
	}
}

// settle waits until count does not change for a while. A wrong guess makes the scenario weaker,
// but never wrong.
func (s *scenarioStage) settle(what string, count func() int64) {
	s.Helper()
	seen, since := int64(-1), time.Now()
	s.wait(func() bool {
		if n := count(); n != seen {
			seen, since = n, time.Now()
		}
		return time.Since(since) > 100*time.Millisecond
	}, func() string { return fmt.Sprintf("%s: %d, and still more", what, count()) })
}

// over checks that the session still exists, and releases all its resources.
func (s *scenarioStage) over() {
	s.Helper()
	s.wait(func() bool {
		return idle(s.dialled) && idle(s.accepted)
	}, func() string { return "all calls have ended, and something is still held" })
}

func idle(s *asterisque.Session) bool {
	st, none := s.Stats(), limits.Amount{}
	return st.Pipes == 0 && st.Waiting == 0 && st.Running == 0 && st.Inbound == none && st.Outbound == none
}
