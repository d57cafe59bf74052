package pool

import (
	"context"
	"errors"
	"sync/atomic"

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

// stillOn reports whether a session, which may be nil, is still the one for calls.
func (s *server) stillOn(session *asterisque.Session) bool {
	return s.conn.Ready() && s.conn.Session() == session
}

// invoke makes a call on the session that the server has, or had, and notes what comes of it.
func (s *server) invoke(ctx context.Context, c *asterisque.Call, session *asterisque.Session) (err error) {
	done := s.load.begin()
	returned := false
	defer func() {
		if returned && err == nil && c.Blocks() {
			return // its End tells
		}
		done(returned && measures(err))
		if returned {
			s.rests.note(err)
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
				done(false)
				s.rests.note(err)
				return result, err
			}})
			return next(ctx, c)
		})
	}
	err = on.Invoke(ctx, c)
	returned = true
	return err
}

// errGone is for a call whose server has lost its session since it was chosen.
var errGone = &asterisque.Abort{Code: asterisque.ErrSessionClosed.Code, Message: "the session is over", Ran: neverSent}

// measures reports whether the time until err came says how long calls take.
func measures(err error) bool {
	return err == nil || errors.Is(err, asterisque.ErrExpired) || !asterisque.Repeatable(err)
}
