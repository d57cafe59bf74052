package pool

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strings"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Address is the address of one server.
type Address struct {
	// URL is the address to dial, such as "tls://10.0.0.7:5330": see [wire.Dial].
	URL string

	// ServerName is the name that the certificate of the server has to prove, if that is not the
	// host of the URL: an IP address from a lookup has the name that was looked up. Otherwise it is
	// empty. It has no effect without TLS.
	ServerName string

	// ID is the id that the server has to present ([asterisque.WithID]). It detects another server
	// that has taken over the address, and proves nothing. If it is empty, any id is accepted.
	ID string

	// Answers names the store of the server's answers to durable calls, if several servers share
	// one. When its server is gone, a durable call continues on any server with the same Answers.
	// If it is empty, only the server itself has its answers.
	Answers string
}

// Resolver yields the addresses of the servers of a service, each time they change. Each set
// replaces the one before it; the order within a set has no effect. An error is yielded as (nil,
// err): the last set stays in use, and the Resolver continues. If the sequence ends before ctx
// does, like that of a fixed list, the last set stays permanently.
//
// A set has 1 to 1,024 addresses, and no URL twice. An invalid set is an error, too. The Resolver
// must not change a set that it has yielded.
//
// A Resolver runs on a goroutine of its own: it may block, and has to return soon after ctx ends.
// It may be called more than once, also concurrently.
type Resolver func(ctx context.Context) iter.Seq2[[]Address, error]

// Fixed is the Resolver of a constant set of servers. It yields an error for an empty list, an
// unusable URL, or a duplicate URL.
func Fixed(urls ...string) Resolver {
	set := make([]Address, len(urls))
	for i, u := range urls {
		set[i].URL = u
	}
	return func(context.Context) iter.Seq2[[]Address, error] {
		return func(yield func([]Address, error) bool) {
			yield(check(set))
		}
	}
}

// mostAddresses is the maximum number of addresses in a set: each may become a connection.
const mostAddresses = 1024

// check returns a copy of a valid set, or an ErrUnavailable with the reason why it is invalid.
func check(set []Address) ([]Address, error) { return checkAs(set, wire.CheckURL) }

// checkAs is check with another rule for valid URLs.
func checkAs(set []Address, fits func(url string) error) ([]Address, error) {
	switch {
	case len(set) == 0:
		return nil, asterisque.ErrUnavailable.Withf("the set of servers is empty: at least one URL is needed")
	case len(set) > mostAddresses:
		return nil, asterisque.ErrUnavailable.Withf("there are %d servers, and at most %d in a set: give each client a part of them", len(set), mostAddresses)
	}
	seen := make(map[string]bool, len(set))
	for _, a := range set {
		if err := fits(a.URL); err != nil {
			return nil, failed(err, "the address of a server cannot be used")
		}
		same := canonical(a.URL)
		if seen[same] {
			return nil, asterisque.ErrUnavailable.Withf("the server %s is in the set twice: name each once", transport.ShowURL(a.URL))
		}
		seen[same] = true
	}
	return slices.Clone(set), nil
}

// canonical returns a URL in a form that is equal for equal hosts. A URL that cannot be parsed
// stays unchanged.
func canonical(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rawURL
	}
	u.Host = strings.ToLower(u.Host)
	return u.String()
}

// failed returns an ErrUnavailable with a message and a cause.
func failed(cause error, format string, args ...any) error {
	a := asterisque.ErrUnavailable.Withf(format, args...)
	a.Cause = cause
	return a
}
