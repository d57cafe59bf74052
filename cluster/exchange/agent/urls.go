package agent

import (
	"context"
	"crypto/tls"
	"sync"
	"time"

	"github.com/asterisque-go/asterisque/wire"
)

// exchangeURLs are the URLs of exchanges. The last connected one comes first, since it has the
// session that may be resumed, and the remaining ones follow in their order.
type exchangeURLs struct {
	all []string // fixed, as tls is
	tls *tls.Config

	mu    sync.Mutex
	index int // of the next URL to dial; guarded by mu
}

// dial connects to the next exchange that answers. Each attempt has its share of the remaining
// time.
func (u *exchangeURLs) dial(ctx context.Context) (w wire.Wire, err error) {
	for left := len(u.all); left > 0; left-- {
		if w, err = u.dialNext(ctx, left); err == nil {
			return w, nil
		}
	}
	return nil, err
}

func (u *exchangeURLs) dialNext(ctx context.Context, left int) (wire.Wire, error) {
	if end, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return wire.Dial(ctx, u.next(), wire.Options{TLS: u.tls})
}

// next returns the next URL to dial, and advances.
func (u *exchangeURLs) next() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	url := u.all[u.index%len(u.all)]
	u.index++
	return url
}

// good records that the last dialled exchange has a session.
func (u *exchangeURLs) good() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.index = max(u.index-1, 0)
}
