package agent

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// urls are where exchanges are. The one that was connected last comes first, which has the session
// that may be resumed, and the others in their order.
type urls struct {
	all []string // these are fixed
	tls *tls.Config

	mu    sync.Mutex
	index int // of the one to dial next; guarded by mu
}

// dial connects to the next one that answers. Each has its part of the time that is left.
func (u *urls) dial(ctx context.Context) (w wire.Wire, err error) {
	for left := len(u.all); left > 0; left-- {
		if w, err = u.dialNext(ctx, left); err == nil {
			return w, nil
		}
	}
	return nil, err
}

func (u *urls) dialNext(ctx context.Context, left int) (wire.Wire, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return wire.Dial(ctx, u.next(), wire.Options{TLS: u.tls})
}

// next returns the one to dial, and moves on.
func (u *urls) next() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	url := u.all[u.index%len(u.all)]
	u.index++
	return url
}

// good notes that there is a session with the one that was dialled last.
func (u *urls) good() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.index = max(u.index-1, 0)
}
