package pool

import (
	"context"
	"errors"
	"iter"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeDNS is a Lookup with answers set by the test.
type fakeDNS struct {
	mu        sync.Mutex
	addresses []netip.Addr // guarded by mu, as all below
	records   []*net.SRV
	err       error
	wait      func(ctx context.Context) // called first for each query
	questions []string
	at        []time.Time // times of the queries
}

func (f *fakeDNS) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	f.asked(ctx, network+" "+host)
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.addresses, f.err
}

func (f *fakeDNS) LookupSRV(ctx context.Context, service, proto, name string) (string, []*net.SRV, error) {
	f.asked(ctx, strings.Join([]string{"SRV", service, proto, name}, " "))
	f.mu.Lock()
	defer f.mu.Unlock()
	return "", f.records, f.err
}

func (f *fakeDNS) asked(ctx context.Context, question string) {
	f.mu.Lock()
	f.questions = append(f.questions, question)
	f.at = append(f.at, time.Now())
	wait := f.wait
	f.mu.Unlock()
	if wait != nil {
		wait(ctx)
	}
}

// answer makes all further queries return these addresses.
func (f *fakeDNS) answer(addresses ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.addresses = nil, nil
	for _, a := range addresses {
		f.addresses = append(f.addresses, netip.MustParseAddr(a))
	}
}

// fail makes all further queries fail.
func (f *fakeDNS) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.addresses = err, nil
}

// asks returns the times between the queries.
func (f *fakeDNS) asks() (waits []time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := 1; i < len(f.at); i++ {
		waits = append(waits, f.at[i].Sub(f.at[i-1]))
	}
	return waits
}

// yielded is one pair that a Resolver has yielded.
type yielded struct {
	set []Address
	err error
}

// follow returns a function that returns the next pair of r, and ends with the test. It runs in a
// bubble of synctest.
func follow(t *testing.T, r Resolver) (next func() ([]Address, error)) {
	pull, stop := iter.Pull2(r(t.Context()))
	t.Cleanup(stop)
	return func() ([]Address, error) {
		set, err, ok := pull()
		require.True(t, ok, "the sequence has ended")
		return set, err
	}
}

// only returns all pairs of r, which has to end by itself.
func only(t *testing.T, r Resolver) (all []yielded) {
	for set, err := range r(t.Context()) {
		all = append(all, yielded{set, err})
		require.Less(t, len(all), 10, "the sequence has to end")
	}
	return all
}

// first returns the first pair of r.
func first(t *testing.T, r Resolver) ([]Address, error) {
	for set, err := range r(t.Context()) {
		return set, err
	}
	require.Fail(t, "nothing was yielded")
	return nil, nil
}

// urlsOf returns the URLs of a set.
func urlsOf(set []Address) (urls []string) {
	for _, a := range set {
		urls = append(urls, a.URL)
	}
	return urls
}

// unknownName returns the error of package net for an unknown name.
func unknownName(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
}

var errServerFailure = errors.New("server misbehaving")
