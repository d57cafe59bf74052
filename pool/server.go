package pool

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// server is one of a pool, and what is known of it.
type server struct {
	pool    *Pool // these are fixed
	address Address
	conn    *asterisque.Connection

	load   load
	rests  rests
	unwell atomic.Bool // it has said that it does not serve
}

func newServer(p *Pool, a Address) *server { return &server{pool: p, address: a} }

// reconnection returns how to connect to the server.
func (s *server) reconnection() asterisque.Reconnection {
	how := s.pool.how.Connection
	how.Dial, how.Background, how.Persist, how.GiveUp = nil, true, true, 0
	how.ServerName, how.PeerID = s.address.ServerName, s.address.ID
	if dial := s.pool.how.Dial; dial != nil {
		how.Dial = func(ctx context.Context) (wire.Wire, error) { return dial(ctx, s.address) }
	}
	own := how.OnState
	how.OnState = func(c *asterisque.Connection, state asterisque.ConnectionState, err error) {
		s.pool.change.Signal()
		if own != nil {
			own(c, state, err)
		}
	}
	return how
}

// takes reports whether a call can be sent to the server now.
func (s *server) takes() bool { return !s.unwell.Load() && s.conn.Ready() }

// serves reports whether the server takes calls and neither rests nor is on trial.
func (s *server) serves() bool { return s.takes() && !s.rests.busy.Load() }

// refuses reports whether the server is known not to take calls now: it rests, says that it does
// not serve, or an attempt to connect to it has failed.
func (s *server) refuses(now time.Time) bool {
	if s.unwell.Load() || s.rests.resting(now) {
		return true
	}
	o := s.conn.Outage()
	return o != nil && o.Why != nil && !s.conn.Ready()
}

// stillOn reports whether a session, which may be nil, is still the one for calls.
func (s *server) stillOn(session *asterisque.Session) bool {
	return s.conn.Ready() && s.conn.Session() == session
}

// invoke makes a call on the session that the server has, or had, and notes what comes of it.
func (s *server) invoke(ctx context.Context, c *asterisque.Call, session *asterisque.Session) (err error) {
	began := time.Now()
	s.load.outstanding.Add(1)
	var over atomic.Bool // with what comes first of the End of a stream and an error
	returned := false
	defer func() {
		switch {
		case returned && err == nil && c.Blocks(), over.Swap(true):
			return // its End tells
		}
		s.load.outstanding.Add(-1)
		if returned && measures(err) {
			s.load.note(began, time.Now(), good(err))
		}
		if returned {
			s.note(began, err)
		}
	}()
	on := asterisque.Caller(s.conn)
	if !c.Durable() || s.address.Answers != "" {
		if session == nil {
			returned = true
			return errGone
		}
		on = session
	}
	if c.Blocks() {
		on = asterisque.Intercept(on, func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
			c.WrapBlocks(asterisque.Blocks{End: func(result []byte, err error) ([]byte, error) {
				if !over.Swap(true) {
					s.streamed(err)
				}
				return result, err
			}})
			return next(ctx, c)
		})
	}
	err = on.Invoke(ctx, c)
	returned = true
	return err
}

// streamed notes how a stream has ended, whose duration says nothing.
func (s *server) streamed(err error) {
	s.load.outstanding.Add(-1)
	if good(err) {
		s.load.answer(time.Now())
	}
	s.note(time.Time{}, err)
}

// note notes how a call ended that began then; zero: how long it took says nothing.
func (s *server) note(began time.Time, err error) {
	switch {
	case good(err):
		s.rests.good()
		return
	case failing(err):
	case began.IsZero() || !errors.Is(err, asterisque.ErrExpired) || !s.silent(began):
		return // it tells nothing
	}
	if s.rests.fail(time.Now()) {
		s.load.forget() // what it then takes for the call on trial is what counts
	}
	if s.rests.busy.Load() {
		s.pool.seek(nil)
	}
}

// silent reports whether a call whose time is over now says that the server does not answer: it has
// answered nothing since an earlier one, while another server answered calls of which hardly any
// were overdue. When all servers are slow, or callers allow too little time, none is to blame.
func (s *server) silent(began time.Time) bool {
	since, ok := s.load.expire(began)
	if !ok {
		return false
	}
	for _, o := range s.pool.spread.Load().servers {
		if o != s && o.takes() && o.load.answers(since) {
			return true
		}
	}
	return false
}

// errGone is for a call whose server has lost its session since it was chosen.
var errGone = &asterisque.Abort{Code: asterisque.ErrSessionClosed.Code, Message: "the session is over", Ran: neverSent}

// measures reports whether the time until err came says how long calls take.
func measures(err error) bool {
	return err == nil || errors.Is(err, asterisque.ErrExpired) || !asterisque.Repeatable(err)
}
