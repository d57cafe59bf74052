package asterisque

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque/codec"
)

// permit is what a call from this side needs before its Open can be put: nothing forbids it, the windows of its function and of the session have room, and so has the
// session.
type permit struct {
	expires time.Time
	meta    *codec.Meta // what the Open says besides; nil: nothing
	lends   *enclosure
	window  *callWindow // that of the function, of which it holds a part; nil without
}

// permit waits until a call with size bytes of parameters may be put.
func (s *Session) permit(ctx context.Context, function uint16, size int, cfg *callConfig) (p permit, a *Abort) {
	if p.expires, a = s.lifetime(ctx, cfg.ttl); a != nil {
		return p, a
	}
	if p.lends, a = enclose(ctx, s, function); a != nil {
		return p, a
	}
	p.meta = p.lends.meta(cfg)
	if p.window, a = s.enterWindow(ctx, function, p.lends, cfg.front); a != nil {
		return p, a
	}
	if a = s.reserveOpen(ctx, size, cfg.priority, p.lends != nil); a != nil {
		p.leave()
	}
	return p, a
}

// leave says that the call is over.
func (p *permit) leave() {
	if p.window != nil {
		p.window.leave()
	}
}
