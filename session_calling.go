package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/aborts"
	"github.com/asterisque-go/asterisque/pipe"
)

// Call calls a function of the peer with params as they are, and blocks until its result arrives.
// The caller owns the result. Call does not retain params. The wait ends with the session and with
// ctx; the end of ctx also ends the handler's context. Every error is an *[Abort]; [Repeatable]
// reports whether repeating the call is safe.
//
// Before it is sent, a call waits for budget of the peer, and while the session is at its outbound
// soft limit. A nested call, made with a handler's context on the handler's session, does not wait
// for the peer: it fails with ErrOverloaded if the budget for nested calls is exhausted.
func (s *Session) Call(ctx context.Context, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	cfg := newCallConfig(opts)
	if plainOn(s, cfg) {
		return s.calls.Call(ctx, function, params, &cfg.Options)
	}
	return CallOn(ctx, s, function, params, opts...)
}

// Open calls a function of the peer and returns the pipe of the running call, which carries Blocks
// both ways until the call ends. Open does not retain params. life governs the whole call: when it
// ends, the call is aborted, and the handler's context ends. Open waits for budget: on this side
// for the Blocks of the callee, at the peer for one more call, and while the session is at its
// outbound soft limit. Every error is an *[Abort].
//
// A pipe occupies memory on both sides until it ends: by itself, by Abort or through life.
func (s *Session) Open(life context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	cfg := newCallConfig(opts)
	if !plainOn(s, cfg) {
		return OpenOn(life, s, function, params, opts...)
	}
	p, a := s.calls.Open(life, function, params, &cfg.Options)
	if a != nil {
		return nil, a
	}
	return p, nil
}

// plainOn reports whether a call on s, which may be nil, with such options has no interceptors.
func plainOn(s *Session, cfg *callConfig) bool {
	return s != nil && s.shared.outward == nil && !cfg.Durable && cfg.around == nil
}

// Outstanding returns the use of the window of a function, so that a caller can check it before it
// prepares an expensive call.
func (s *Session) Outstanding(function uint16) Outstanding {
	if s == nil {
		return Outstanding{}
	}
	return Outstanding(s.calls.Outstanding(function))
}

// Invoke implements [Caller]: it makes the call c at the peer. See [Session.Call] and
// [Session.Open].
func (s *Session) Invoke(ctx context.Context, c *Call) error {
	m, a := makingOf(c)
	switch {
	case a != nil:
		return a
	case s == nil:
		return errNoSession
	case m.cfg.Durable && m.cfg.Key == nil && !m.blocks:
		return aborts.NeverSent(codec.ErrUnavailable.Withf("a durable call needs a Connection: see Node.Connect"))
	}
	m.makeOn(&s.calls)
	if outward := s.shared.outward; outward != nil {
		return outward(ctx, c)
	}
	return c.carryOut(ctx)
}
