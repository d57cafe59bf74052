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

// Address is where one server listens.
type Address struct {
	// URL is what is dialled, such as "tls://10.0.0.7:5330": see [wire.Dial].
	URL string

	// ServerName is the name that the certificate of the server has to prove, where that is not the
	// host of the URL: an IP address that was looked up has the name for which it was. It is empty
	// otherwise, and means nothing without TLS.
	ServerName string

	// ID is what the server has to call itself ([asterisque.WithID]), so that another one which has
	// come to listen there is not taken for it. It proves nothing. Empty lets every server do.
	ID string

	// Answers names where the server keeps the answers to durable calls, if it does so together
	// with others: then a durable call goes on to any server with the same Answers when its own is
	// gone. Empty: it alone knows them.
	Answers string
}

// Resolver yields where the servers of a service are, as often as that changes. Each set takes the
// place of the one before it; its order means nothing. An error is yielded as (nil, err): the last
// set stays in use, and the Resolver goes on. When the sequence ends before ctx does, as that of a
// fixed list, the last set stays for good.
//
// A set has 1 to 1,024 addresses, and no URL twice; one that does not is an error, too. Who has
// yielded a set does not change it afterwards.
//
// A Resolver runs on one goroutine, which is its own: it may wait, and has to return soon when ctx
// ends. It may be called more than once, also concurrently.
type Resolver func(ctx context.Context) iter.Seq2[[]Address, error]

// Fixed is the Resolver of servers that never change. An empty list, a URL that cannot be used, and
// one that is there twice are errors, which whoever uses the Resolver gets from it.
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

// mostAddresses is how many addresses a set may have: each may become a connection.
const mostAddresses = 1024

// check returns a copy of a set that can be used, or an ErrUnavailable that says why it cannot.
func check(set []Address) ([]Address, error) { return checkAs(set, wire.CheckURL) }

// checkAs is check with another opinion of what URL can be used.
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

// canonical returns a URL, which can be parsed, in a form that is equal for equal hosts.
func canonical(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return rawURL
	}
	u.Host = strings.ToLower(u.Host)
	return u.String()
}

// failed returns an ErrUnavailable with a message and what led to it.
func failed(cause error, format string, args ...any) error {
	a := asterisque.ErrUnavailable.Withf(format, args...)
	a.Cause = cause
	return a
}
