package pool

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire"
)

var greet = asterisque.Func[int, string](1, "greet")

// greeter is a server in memory, at an address of the fake DNS, which may reject its calls.
type greeter struct {
	*asterisque.Node
	refuses atomic.Bool
}

func newGreeter(t *testing.T, address string) *greeter {
	g, svc := new(greeter), asterisque.NewService()
	greet.Handle(svc, func(context.Context, int) (string, error) {
		if g.refuses.Load() {
			return "", &asterisque.Abort{Code: codec.Overloaded, Message: "too much", Ran: codec.Refused}
		}
		return address, nil
	})
	g.Node = asterisque.NewNode(asterisque.WithService(svc))
	ln, err := wire.Listen(t.Context(), "mem://"+address, wire.Options{})
	require.NoError(t, err)
	go g.Serve(context.Background(), ln) // ends with the node
	return g
}

// poolOf returns a pool in a bubble, of servers in memory that resolve yields by their addresses.
func poolOf(t *testing.T, resolve Resolver, how Config) *Pool {
	how.Dial = func(ctx context.Context, a Address) (wire.Wire, error) {
		host := strings.TrimSuffix(strings.TrimPrefix(a.URL, "tls://"), ":5330")
		return wire.Dial(ctx, "mem://"+host, wire.Options{})
	}
	p, err := New(t.Context(), asterisque.NewNode(), resolve, how)
	require.NoError(t, err)
	return p
}

// TestSeek_ServersThatRefuse makes the only known server fail in some way, while DNS has another
// server: a call gets there long before the DNS answer expires.
func TestSeek_ServersThatRefuse(t *testing.T) {
	for name, fail := range map[string]func(g *greeter){
		"is away":  func(g *greeter) { g.Close() },
		"restarts": func(g *greeter) { g.Shutdown(context.Background()) },
		"refuses":  func(g *greeter) { g.refuses.Store(true) },
	} {
		for budget, b := range map[string]*asterisque.RetryBudget{"": nil, ", without a budget": asterisque.NewRetryBudget(0, 0)} {
			t.Run(name+budget, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					old, new := newGreeter(t, "10.0.0.1"), newGreeter(t, "10.0.0.2")
					defer old.Close()
					defer new.Close()
					dns := &fakeDNS{}
					dns.answer("10.0.0.1")
					p := poolOf(t, DNS(orders, DNSConfig{Lookup: dns, Every: time.Hour}), Config{Budget: b})
					defer p.Close()
					_, err := greet.Call(t.Context(), p, 0)
					require.NoError(t, err)
					fakeclock.Sleep(10 * time.Second)
					require.Empty(t, dns.asks(), "as long as the server answers")

					dns.answer("10.0.0.2")
					fail(old)
					begin, got := time.Now(), ""
					for got == "" && time.Since(begin) < time.Minute {
						if got, err = greet.Call(t.Context(), p, 0); err != nil {
							require.ErrorIs(t, err, asterisque.ErrOverloaded)
							fakeclock.Sleep(10 * time.Millisecond)
						}
					}
					require.Equal(t, "10.0.0.2", got)
					require.LessOrEqual(t, time.Since(begin), time.Second/2)
				})
			})
		}
	}
}

// TestSeek_LeastWait has calls that wait for a minute for unreachable servers.
func TestSeek_LeastWait(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(dns *fakeDNS)
		least  time.Duration // the first retry after a failure comes after half a second to one
	}{
		"the same servers": {func(dns *fakeDNS) { dns.answer("10.0.0.1", "10.0.0.2") }, leastWait},
		"a failure":        {func(dns *fakeDNS) { dns.fail(errServerFailure) }, leastWait / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dns := &fakeDNS{}
				dns.answer("10.0.0.1", "10.0.0.2")
				p := poolOf(t, DNS(orders, DNSConfig{Lookup: dns, Every: time.Hour}), Config{})
				defer p.Close()
				c.answer(dns)
				var all sync.WaitGroup
				for range 10 {
					all.Go(func() {
						_, err := greet.Call(t.Context(), p, 0, asterisque.WithTTL(time.Minute))
						require.ErrorIs(t, err, asterisque.ErrExpired)
					})
				}
				all.Wait()
				asks := dns.asks()
				require.InDelta(t, 59, len(asks), 3)
				for _, wait := range asks {
					require.GreaterOrEqual(t, wait, c.least)
				}
				before := len(asks)
				fakeclock.Sleep(10 * time.Minute)
				require.LessOrEqual(t, len(dns.asks()), before+2, "no call needs a server")
			})
		})
	}
}

// TestSeek_OneServerThatServes makes one of two servers fail: no DNS query follows.
func TestSeek_OneServerThatServes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := newGreeter(t, "10.0.0.1"), newGreeter(t, "10.0.0.2")
		defer good.Close()
		defer bad.Close()
		dns := &fakeDNS{}
		dns.answer("10.0.0.1", "10.0.0.2", "10.0.0.3")
		p := poolOf(t, DNS(orders, DNSConfig{Lookup: dns, Every: time.Hour}), Config{})
		defer p.Close()
		synctest.Wait() // until both are connected
		bad.refuses.Store(true)
		for range 1000 {
			_, err := greet.Call(t.Context(), p, 0)
			require.NoError(t, err)
			fakeclock.Sleep(10 * time.Millisecond)
		}
		_, err := greet.Call(t.Context(), p.At("tls://10.0.0.3:5330"), 0, asterisque.WithTTL(time.Minute))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.Empty(t, dns.asks())
	})
}

// TestSeek_ResolverThatHasEnded has a Resolver that ends each time with an error, and is called
// again after increasing delays, but at once while calls wait.
func TestSeek_ResolverThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGreeter(t, "10.0.0.2")
		defer g.Close()
		var times, knows atomic.Int64
		p := poolOf(t, func(context.Context) iter.Seq2[[]Address, error] {
			times.Add(1)
			return func(yield func([]Address, error) bool) {
				if knows.Load() > 0 {
					yield([]Address{{URL: "tls://10.0.0.2:5330"}}, nil)
					return
				}
				yield(nil, errors.New("the registry is away"))
			}
		}, Config{Connection: asterisque.ReconnectConfig{Background: true}})
		defer p.Close()
		fakeclock.Sleep(time.Hour)
		require.Less(t, times.Load(), int64(200))
		before := times.Load()
		_, err := greet.Call(t.Context(), p, 0, asterisque.WithTTL(10*time.Second))
		require.ErrorContains(t, err, "the registry is away")
		require.InDelta(t, 10, times.Load()-before, 2)
		knows.Store(1)
		begin := time.Now()
		_, err = greet.Call(t.Context(), p, 0)
		require.NoError(t, err)
		require.LessOrEqual(t, time.Since(begin), 2*leastWait)
	})
}
