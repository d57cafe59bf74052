package pool

import (
	"context"
	"iter"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/asterisque-go/asterisque/internal/wait"
)

// DNSConfig says how [DNS] looks names up.
type DNSConfig struct {
	// Every is how long an answer holds until the name is looked up again while servers serve, less
	// a random part of up to a fifth, so that clients do not ask all at once. 0 is 30 seconds, and
	// less than a second counts as a second. The TTL of the answer is not known here: that is for
	// the cache of whoever is asked.
	Every time.Duration

	// Network is "ip4" for IPv4 addresses alone, "ip6" for IPv6, and "ip" or empty for both. A
	// server that has one of each is two servers to [DNS], unless it is told which to use.
	Network string

	// Lookup is asked; nil is [net.DefaultResolver]. It is used by one goroutine for each sequence
	// of the Resolver.
	Lookup Lookup
}

// Lookup is what [DNS] asks: a *[net.Resolver] is one. Each question has 5 seconds, then its
// context ends; a Lookup that goes on nevertheless keeps the Resolver from returning.
type Lookup interface {
	// LookupNetIP returns the addresses of a host, as [net.Resolver.LookupNetIP].
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)

	// LookupSRV returns the SRV records of a name, as [net.Resolver.LookupSRV].
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// DNS is the Resolver of servers that DNS knows by a name. The port decides what is looked up:
//
//   - "tls://orders.example.com:5330" has one: the A and AAAA records of the name are the servers,
//     all at that port.
//   - "tls://orders.example.com" has none: the SRV records of _asterisque._tcp.orders.example.com
//     say hosts and ports, whatever the transport. "tls://_rpc._udp.orders.example.com" names the
//     records in full. A transport that could do without the port, such as "wss", needs it here.
//   - "tls://10.0.0.7:5330" is no name, but the address itself, and nothing is looked up.
//
// Of SRV records only those of the lowest priority count; others are not used even if no server of
// these answers. Their weight is ignored: all servers are equal. The host of a record is one
// server, whose address is looked up when it is dialled.
//
// Whatever DNS says, the certificates of the servers have to prove the name in the URL, without the
// labels that begin with '_': it is their ServerName. With TLS, who forges answers can thus keep
// clients from the servers, but not take their place. All else in the URL, such as its path, is the
// same for all servers.
//
// The name is looked up again and again (see [DNSConfig].Every), and at once when all servers of
// the Pool refuse its calls, rest or are away: then a second after the last time at the earliest,
// as long as calls are made. A set that is as before is not yielded again. What fails is an error
// that wraps that of the Lookup, and is tried again after a second, then after ever longer, at most
// Every: no answer, a name that is not known (any more), an answer without addresses or with more
// than 1,024, or with one that is no server's, such as 0.0.0.0. A URL that cannot work, or a wrong
// Network, is an error that ends the sequence.
func DNS(url string, how DNSConfig) Resolver {
	return func(ctx context.Context) iter.Seq2[[]Address, error] {
		return func(yield func([]Address, error) bool) {
			n, err := newName(url, how)
			switch {
			case err != nil:
				yield(nil, err)
			case n.isAddress():
				yield([]Address{{URL: url}}, nil)
			default:
				n.watch(ctx, how.every(), yield)
			}
		}
	}
}

const (
	lookupTime = 5 * time.Second // for one question
	leastWait  = time.Second
)

func (c DNSConfig) every() time.Duration {
	if c.Every == 0 {
		return 30 * time.Second
	}
	return max(c.Every, leastWait)
}

// watch looks the name up until ctx ends, or yield wants no more.
func (n *name) watch(ctx context.Context, every time.Duration, yield func([]Address, error) bool) {
	var last []Address
	var wait time.Duration
	for {
		set, err := n.lookUp(ctx)
		if ctx.Err() != nil {
			return // err is about that
		}
		switch {
		case err != nil:
			wait = retryAfter(wait, every)
			if !yield(nil, err) || !pause(ctx, wait-rand.N(wait/2)) {
				return
			}
			continue
		case !slices.Equal(set, last):
			last = set
			if !yield(slices.Clone(set), nil) {
				return
			}
		}
		wait = 0
		if !pause(ctx, every-rand.N(every/5)) {
			return
		}
	}
}

// retryAfter returns how long to wait after another failure, at the most: a second, and then twice
// the last wait, which is 0 for the first one, up to every.
func retryAfter(last, every time.Duration) time.Duration {
	switch {
	case last == 0:
		return leastWait
	case last > every/2:
		return every
	}
	return 2 * last
}

// seekKey is the key of the notice in the context of a Resolver by which its Pool seeks servers.
type seekKey struct{}

// pause waits for d until a Resolver asks again, or for leastWait if its Pool seeks servers, and
// reports whether ctx is still alive.
func pause(ctx context.Context, d time.Duration) bool {
	var sought <-chan struct{}
	if n, ok := ctx.Value(seekKey{}).(*wait.Notice); ok {
		sought = n.Next()
	}
	begin, t := time.Now(), time.NewTimer(d)
	defer t.Stop()
	select {
	case <-sought:
		t.Reset(min(d, leastWait) - time.Since(begin))
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
