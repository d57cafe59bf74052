package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/internal/outbox"
)

// permit waits until a call from this side may be sent: nothing forbids it, the windows of its function and of the session have room, and so has the session. It fills in what its Open says
// besides function and parameters. The call has to leave window at its end, unless that is nil; lends is what it lends to calls within it.
func (s *Session) permit(ctx context.Context, open *outbox.Message, cfg *callConfig) (lends *enclosure, window *callWindow, a *Abort) {
	if open.Expires, a = s.lifetime(ctx, cfg.ttl); a != nil {
		return nil, nil, a
	}
	if lends, a = enclose(ctx, s, open.Function); a != nil {
		return nil, nil, a
	}
	open.Meta = lends.meta(cfg)
	if window, a = s.enterWindow(ctx, open.Function, lends, cfg.front); a != nil {
		return nil, nil, a
	}
	if a = s.reserveOpen(ctx, len(open.Payload), cfg.priority, lends != nil); a != nil {
		window.leave()
		return nil, nil, a
	}
	return lends, window, nil
}
