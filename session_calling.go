package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/pipe"
)

// Call calls a function of the peer with params as they are, and waits for its result, which
// belongs to the caller. It keeps no part of params. The wait ends with ctx, which also ends the
// handler's context, and with the session. Every error is an *[Abort]; [Repeatable] tells whether
// the call can safely be made again.
//
// A call waits before it is sent while the peer has no room for it, and while the session is at its
// outbound soft limit. One that a handler makes with its context, on the session that it was called
// on, waits for no room of the peer: it fails with ErrOverloaded if there is none for calls within
// calls.
func (s *Session) Call(ctx context.Context, function uint16, params []byte, opts ...CallOption) ([]byte, error) {
	cfg := newCallConfig(opts)
	if plainOn(s, cfg) {
		return s.call(ctx, function, params, cfg)
	}
	return CallOn(ctx, s, function, params, opts...)
}

// Open calls a function of the peer and returns the pipe of the running call, which carries Blocks
// both ways until the call ends. It keeps no part of params. life governs the whole call: when it
// ends, the call is aborted, and the handler's context ends. Open waits for room: here for the
// Blocks of the callee, at the peer for one call more, and while the session is at its outbound
// soft limit. Every error is an *[Abort].
//
// A pipe occupies memory on both sides until it comes to its end: by itself, by Abort or through
// life.
func (s *Session) Open(life context.Context, function uint16, params []byte, opts ...CallOption) (*pipe.Pipe, error) {
	cfg := newCallConfig(opts)
	if !plainOn(s, cfg) {
		return OpenOn(life, s, function, params, opts...)
	}
	p, a := s.open(life, function, params, cfg)
	if a != nil {
		return nil, a
	}
	return p, nil
}

// plainOn reports whether nothing stands around a call on s, which may be nil, with such options.
func plainOn(s *Session, cfg *callConfig) bool { return s != nil && s.plain(cfg) }

// Outstanding tells how much of the window of a function is used, so that a caller can find out
// before it prepares an expensive call.
func (s *Session) Outstanding(function uint16) Outstanding {
	if s == nil {
		return Outstanding{}
	}
	return s.windows[function].used()
}

// Invoke implements [Caller]: it makes c at the peer. See [Session.Call] and [Session.Open].
func (s *Session) Invoke(ctx context.Context, c *Call) error {
	m, a := makingOf(c)
	switch {
	case a != nil:
		return a
	case s == nil:
		return errNoSession
	case m.cfg.durable && m.cfg.key == nil && !m.blocks:
		return neverSent(codec.ErrUnavailable.Withf("a durable call needs a Connection: see Node.Connect"))
	}
	m.makeOn(&s.exchange)
	if outward := s.common.outward; outward != nil {
		return outward(ctx, c)
	}
	return c.carryOut(ctx)
}
