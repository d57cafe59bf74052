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

// DNSConfig configures the lookups of [DNS].
type DNSConfig struct {
	// Every is the time between two lookups of the name while servers serve, less a random part of
	// up to a fifth, so that clients do not query all at once. 0 is 30 seconds, and less than a
	// second counts as a second. The TTL of an answer is not known here: the cache of the resolver
	// in use handles it.
	Every time.Duration

	// Network is "ip4" for IPv4 addresses alone, "ip6" for IPv6, and "ip" or empty for both. A
	// server with an address of each kind is two servers to [DNS], unless Network selects one kind.
	Network string

	// Lookup resolves names; nil is [net.DefaultResolver]. One goroutine for each sequence of the
	// Resolver uses it.
	Lookup Lookup
}

// Lookup is the resolver interface of [DNS], which *[net.Resolver] implements. The context of each
// query expires after 5 seconds. A Lookup that ignores its context keeps the Resolver from
// returning.
type Lookup interface {
	// LookupNetIP returns the addresses of a host, as [net.Resolver.LookupNetIP].
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)

	// LookupSRV returns the SRV records of a name, as [net.Resolver.LookupSRV].
	LookupSRV(ctx context.Context, service, proto, name string) (cname string, records []*net.SRV, err error)
}

// DNS is a Resolver for servers that are registered in DNS. The port of the URL decides the kind of
// lookup:
//
//   - "tls://orders.example.com:5330" has a port: the A and AAAA records of the name are the
//     servers, all at that port.
//   - "tls://orders.example.com" has no port: the SRV records of
//     _asterisque._tcp.orders.example.com provide hosts and ports, for every transport.
//     "tls://_rpc._udp.orders.example.com" names the records in full. A transport with a default
//     port, such as "wss", needs a port here.
//   - "tls://10.0.0.7:5330" is an address and needs no lookup.
//
// Only the SRV records of the lowest priority count. The remaining records are not used even if no
// server of these answers. DNS ignores the weights: all servers are equal. The host of a record is
// one server. Its address is looked up at each dial.
//
// The certificates of the servers have to prove the name in the URL without the labels that begin
// with '_', regardless of the answers: the name is their ServerName. With TLS, forged answers can
// thus block clients from the servers, but cannot impersonate them. The remaining parts of the URL,
// such as its path, are the same for all servers.
//
// DNS repeats the lookup at intervals (see [DNSConfig].Every), and at once when all servers of the
// Pool reject its calls, rest or are unreachable: then at the earliest a second after the last
// lookup, as long as calls are made. A set that has not changed is not yielded again. A failed
// lookup is yielded as an error that wraps that of the Lookup, and is retried after a second, then
// after increasing delays up to Every. Failures are: no answer, an unknown name, an answer without
// addresses or with more than 1,024, and an answer with an address that no server can have, such as
// 0.0.0.0. A URL that cannot work, or a wrong Network, is an error that ends the sequence.
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
	lookupTime = 5 * time.Second // for one query
	leastWait  = time.Second
)

func (c DNSConfig) every() time.Duration {
	if c.Every == 0 {
		return 30 * time.Second
	}
	return max(c.Every, leastWait)
}

// watch looks the name up until ctx ends or yield returns false.
func (n *dnsName) watch(ctx context.Context, every time.Duration, yield func([]Address, error) bool) {
	var last []Address
	var wait time.Duration
	for {
		set, err := n.lookUp(ctx)
		if ctx.Err() != nil {
			return // err is caused by ctx
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

// retryAfter returns the maximum delay after another failure: a second at first, then twice the
// last delay, up to every. The last delay is 0 for the first failure.
func retryAfter(last, every time.Duration) time.Duration {
	switch {
	case last == 0:
		return leastWait
	case last > every/2:
		return every
	}
	return 2 * last
}

// seekKey is the context key of the notice by which a Pool makes its Resolver seek servers.
type seekKey struct{}

// pause waits for d until the next lookup, or for leastWait if the Pool seeks servers. It reports
// whether ctx has not ended.
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
