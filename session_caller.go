package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// Caller is what calls are made on: a [Session], or a [Connection], which finds one.
type Caller interface {
	// session returns the session to call on.
	session(ctx context.Context, cfg *callConfig) (*Session, *Abort)
}

// repeater is a Caller that has one session after the other.
type repeater interface {
	Caller

	// overtaken reports whether a call that failed on s with err is to be made on the next session.
	overtaken(s *Session, err error) bool

	// durably makes a call until it is answered, on one session after the other.
	durably(ctx context.Context, cfg *callConfig, call func(s *Session, cfg *callConfig) error) error
}

// session implements Caller.
func (s *Session) session(context.Context, *callConfig) (*Session, *Abort) { return s, nil }

// callOn makes a call on the session that on finds, and if it is durable again on the next one.
func callOn[R any](ctx context.Context, on Caller, cfg *callConfig, call func(s *Session, cfg *callConfig) (R, error)) (result R, err error) {
	if !cfg.durable {
		return onSession(ctx, on, cfg, call)
	}
	r, ok := on.(repeater)
	if !ok {
		return result, neverSent(codec.ErrUnavailable.Withf("a durable call needs a Connection: see Node.Connect"))
	}
	err = r.durably(ctx, cfg, func(s *Session, cfg *callConfig) error {
		result, err = call(s, cfg)
		return err
	})
	return result, err
}

// onSession makes a call on the session that on finds. If that is one of a connection whose peer
// has shut it down meanwhile, so that the call certainly did not run, it is made on the next one.
func onSession[R any](ctx context.Context, on Caller, cfg *callConfig, call func(s *Session, cfg *callConfig) (R, error)) (result R, err error) {
	var end time.Time
	if cfg.ttl > 0 {
		end = time.Now().Add(cfg.ttl) // such a cfg is the call's own
	}
	for {
		s, a := on.session(ctx, cfg)
		if a != nil {
			return result, a
		}
		result, err = call(s, cfg)
		if err == nil {
			return result, nil
		}
		if r, ok := on.(repeater); !ok || !r.overtaken(s, err) {
			return result, err
		}
		if cfg.ttl > 0 {
			cfg.ttl = max(time.Until(end), 1)
		}
	}
}
