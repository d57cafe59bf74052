package pool

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire"
)

const orders = "tls://orders.example.com:5330"

func TestDNS_Repeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{}
		dns.answer("10.0.0.1")
		next := follow(t, DNS(orders, DNSConfig{Lookup: dns}))
		set, err := next()
		require.NoError(t, err)
		require.Equal(t, []Address{{URL: "tls://10.0.0.1:5330", ServerName: "orders.example.com"}}, set)

		before := time.Now()
		dns.answer("10.0.0.1", "10.0.0.2")
		set, err = next()
		require.NoError(t, err)
		require.Equal(t, []string{"tls://10.0.0.1:5330", "tls://10.0.0.2:5330"}, urlsOf(set))
		require.LessOrEqual(t, time.Since(before), 30*time.Second)
		require.Greater(t, time.Since(before), 24*time.Second, "a fifth is random")
	})
}

func TestDNS_UnchangedSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{}
		dns.answer("10.0.0.1", "10.0.0.2")
		next := follow(t, DNS(orders, DNSConfig{Lookup: dns, Every: 10 * time.Second}))
		_, err := next()
		require.NoError(t, err)

		dns.answer("10.0.0.2", "10.0.0.1", "10.0.0.2") // in another order, and one twice
		before := time.Now()
		go func() { // ends with its sleep
			fakeclock.Sleep(time.Hour)
			dns.answer("10.0.0.3")
		}()
		set, err := next()
		require.NoError(t, err)
		require.Equal(t, []string{"tls://10.0.0.3:5330"}, urlsOf(set))
		require.GreaterOrEqual(t, time.Since(before), time.Hour)
		require.Greater(t, len(dns.asks()), 360)
	})
}

func TestDNS_SetIsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{}
		dns.answer("10.0.0.1")
		next := follow(t, DNS(orders, DNSConfig{Lookup: dns}))
		set, _ := next()
		set[0] = Address{}
		go func() { // ends with its sleep
			fakeclock.Sleep(time.Hour)
			dns.answer("10.0.0.2")
		}()
		set, err := next()
		require.NoError(t, err)
		require.Equal(t, []string{"tls://10.0.0.2:5330"}, urlsOf(set), "the one before was still the last")
	})
}

func TestDNS_NameVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{}
		dns.answer("10.0.0.1")
		next := follow(t, DNS(orders, DNSConfig{Lookup: dns}))
		_, err := next()
		require.NoError(t, err)
		dns.fail(unknownName("orders.example.com"))
		for range 5 {
			set, err := next()
			require.Nil(t, set)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorContains(t, err, "DNS does not know the servers of "+orders)
			var cause *net.DNSError
			require.ErrorAs(t, err, &cause)
		}
		dns.answer("10.0.0.9")
		set, err := next()
		require.NoError(t, err)
		require.Equal(t, []string{"tls://10.0.0.9:5330"}, urlsOf(set))
	})
}

func TestDNS_RetryDelay(t *testing.T) {
	for every, most := range map[time.Duration]time.Duration{0: 30 * time.Second, 7 * time.Second: 7 * time.Second, time.Nanosecond: time.Second, -1: time.Second, 1<<63 - 1: 512 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			dns := &fakeDNS{}
			dns.fail(errServerFailure)
			next := follow(t, DNS(orders, DNSConfig{Lookup: dns, Every: every}))
			for range 11 {
				_, err := next()
				require.ErrorIs(t, err, errServerFailure)
				require.ErrorIs(t, err, asterisque.ErrUnavailable)
			}
			want := time.Second
			for _, wait := range dns.asks() {
				require.LessOrEqual(t, wait, want)
				require.Greater(t, wait, want/2-1, "a half is random")
				want = min(2*want, most)
			}

			dns.answer("10.0.0.1")
			_, err := next()
			require.NoError(t, err)
			dns.fail(errServerFailure)
			_, err = next()
			require.Error(t, err)
			before := time.Now()
			_, err = next()
			require.Error(t, err)
			require.LessOrEqual(t, time.Since(before), time.Second, "it begins anew after a success")
		})
	}
}

func TestDNS_QueryTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{}
		dns.wait = func(ctx context.Context) { <-ctx.Done(); dns.fail(ctx.Err()) }
		before := time.Now()
		_, err := first(t, DNS(orders, DNSConfig{Lookup: dns}))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.Equal(t, 5*time.Second, time.Since(before))
	})
}

func TestDNS_ContextEnds(t *testing.T) {
	for name, dns := range map[string]*fakeDNS{
		"while it asks":                 {wait: func(ctx context.Context) { <-ctx.Done() }, err: errServerFailure},
		"while it waits":                {addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}},
		"while it waits after an error": {err: errServerFailure},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				var all []yielded
				done := make(chan struct{})
				go func() { // ends with the sequence
					defer close(done)
					for set, err := range DNS(orders, DNSConfig{Lookup: dns})(ctx) {
						all = append(all, yielded{set, err})
					}
				}()
				synctest.Wait()
				before := time.Now()
				cancel()
				<-done
				require.Zero(t, time.Since(before), "at once")
				require.Len(t, all, map[bool]int{true: 0, false: 1}[dns.wait != nil])
			})
		})
	}
}

func TestDNS_ContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dns := &fakeDNS{}
	dns.answer("10.0.0.1")
	for range DNS(orders, DNSConfig{Lookup: dns})(ctx) {
		require.Fail(t, "nothing is yielded")
	}
	require.LessOrEqual(t, len(dns.questions), 1)
}

func TestDNS_YieldStops(t *testing.T) {
	for _, dns := range []*fakeDNS{{addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}, {err: errServerFailure}} {
		_, _ = first(t, DNS(orders, DNSConfig{Lookup: dns}))
		require.Len(t, dns.questions, 1)
	}
}

func TestDNS_LookupPanics(t *testing.T) {
	dns := &fakeDNS{wait: func(context.Context) { panic("no mercy") }}
	require.PanicsWithValue(t, "no mercy", func() { _, _ = first(t, DNS(orders, DNSConfig{Lookup: dns})) })
	dns.wait = nil
	dns.answer("10.0.0.1")
	_, err := first(t, DNS(orders, DNSConfig{Lookup: dns}))
	require.NoError(t, err, "the Resolver can be run again")
}

func TestDNS_SeveralPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dns := &fakeDNS{}
		dns.answer("10.0.0.1")
		r := DNS(orders, DNSConfig{Lookup: dns})
		one, two := follow(t, r), follow(t, r)
		a, err := one()
		require.NoError(t, err)
		b, err := two()
		require.NoError(t, err)
		require.Equal(t, a, b)
	})
}

func TestDNS_SystemResolver(t *testing.T) {
	unreachable := errors.New("there is no network in this test")
	system := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, unreachable
	}}
	for _, url := range []string{"tls://orders.example.invalid.:5330", "tls://orders.example.invalid."} {
		_, err := first(t, DNS(url, DNSConfig{Lookup: system}))
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.ErrorContains(t, err, url)
		require.NotErrorIs(t, err, wire.ErrURL)
	}
}
