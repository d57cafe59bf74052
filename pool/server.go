package pool

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// server is the state of one server of a pool.
type server struct {
	pool    *Pool // fixed, as address and conn are
	address Address
	conn    *asterisque.Connection

	load    serverLoad
	ejector outlierEjector
	unwell  atomic.Bool // it has reported that it does not serve
}

func newServer(p *Pool, a Address) *server { return &server{pool: p, address: a} }

// reconnection returns the configuration of the connection to the server.
func (s *server) reconnection() asterisque.ReconnectConfig {
	how := s.pool.how.Connection
	how.Dial, how.Background, how.RetryFatal, how.MaxOutage = nil, true, true, 0
	how.ServerName, how.PeerID = s.address.ServerName, s.address.ID
	if dial := s.pool.how.Dial; dial != nil {
		how.Dial = func(ctx context.Context) (wire.Wire, error) { return dial(ctx, s.address) }
	}
	own := how.OnState
	how.OnState = func(c *asterisque.Connection, state asterisque.ConnectionState, err error) {
		s.pool.change.Signal()
		if state == asterisque.Connected {
			s.load.forget() // the latency of another process, or of before the outage
		}
		if own != nil {
			own(c, state, err)
		}
	}
	return how
}

// takes reports whether a call can be sent to the server now.
func (s *server) takes() bool { return !s.unwell.Load() && s.conn.Ready() }

// serves reports whether the server takes calls and neither rests nor is on trial.
func (s *server) serves() bool { return s.takes() && !s.ejector.busy.Load() }

// refuses reports whether the server is known not to take calls now: it rests, it has reported that
// it does not serve, or an attempt to connect to it has failed.
func (s *server) refuses(now time.Time) bool {
	if s.unwell.Load() || s.ejector.resting(now) {
		return true
	}
	o := s.conn.Outage()
	return o != nil && o.Why != nil && !s.conn.Ready()
}

// stillOn reports whether session, which may be nil, is still the present one.
func (s *server) stillOn(session *asterisque.Session) bool {
	return s.conn.Ready() && s.conn.Session() == session
}

// invoke makes a call on session, and records the outcome.
func (s *server) invoke(ctx context.Context, c *asterisque.Call, session *asterisque.Session) (err error) {
	began := time.Now()
	s.load.outstanding.Add(1)
	var over atomic.Bool // set by the first of the End of a stream and an error
	returned := false
	defer func() {
		switch {
		case returned && err == nil && c.Blocks(), over.Swap(true):
			return // its End reports
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

// streamed records the end of a stream, without its duration.
func (s *server) streamed(err error) {
	s.load.outstanding.Add(-1)
	if good(err) {
		s.load.answer(time.Now())
	}
	s.note(time.Time{}, err)
}

// note records the outcome of a call that began at that time. The zero time means that its duration
// does not count.
func (s *server) note(began time.Time, err error) {
	switch {
	case good(err):
		s.ejector.good()
		return
	case failing(err):
	case began.IsZero() || !errors.Is(err, asterisque.ErrExpired) || !s.silent(began):
		return // no information about the server
	}
	if s.ejector.fail(time.Now()) {
		s.load.forget() // only the latency of the trial counts from now on
	}
	if s.ejector.busy.Load() {
		s.pool.seek(nil)
	}
}

// silent reports whether the expiry of a call shows that the server does not answer: the server has
// not answered since an earlier expired call, while another server answered calls of which hardly
// any expired. If all servers are slow, or callers allow too little time, the server is not at
// fault.
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

// errGone is the error of a call on a server that has lost its session since it was chosen.
var errGone = &asterisque.Abort{Code: asterisque.ErrSessionClosed.Code, Message: "the session is over", Ran: neverSent}

// measures reports whether the duration of a call with outcome err counts for the latency.
func measures(err error) bool {
	return err == nil || errors.Is(err, asterisque.ErrExpired) || !asterisque.Repeatable(err)
}
