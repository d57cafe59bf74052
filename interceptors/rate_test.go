package interceptors_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/interceptors"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestRate_Burst(t *testing.T) {
	for by, limit := range map[string]func(rate.Limit, int) asterisque.Interceptor{"peer": interceptors.RatePerPeer, "function": interceptors.RatePerFunction} {
		for _, side := range []string{"made", "served"} {
			for kind, make := range kinds {
				t.Run(by+" "+side+" "+kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var ran atomic.Int64
						count := serving(func(_ context.Context, s string) (string, error) { ran.Add(1); return s, nil })
						l := limit(rate.Every(2*time.Second), 3)
						here, there := node(t), node(t, count, served(l))
						if side == "made" {
							here, there = node(t, made(l)), node(t, count)
						}
						s := connect(t, here, there)
						for range 3 {
							_, err := make(background, s, "x")
							require.NoError(t, err)
						}
						_, err := make(background, s, "x")
						require.ErrorIs(t, err, asterisque.ErrOverloaded)
						require.True(t, asterisque.Repeatable(err))
						require.EqualValues(t, 3, ran.Load())
						advice, ok := asterisque.RetryAfter(err)
						require.True(t, ok)
						require.Equal(t, 2*time.Second, advice)
						fakeclock.Sleep(advice - time.Millisecond)
						_, err = make(background, s, "x")
						require.Error(t, err)
						fakeclock.Sleep(time.Millisecond)
						_, err = make(background, s, "x")
						require.NoError(t, err, "the advice is exact")
						_, err = make(background, s, "x")
						require.Error(t, err, "and there was room for one")
					})
				})
			}
		}
	}
}

func TestRatePerFunction_Separate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := node(t, serving(says), served(interceptors.RatePerFunction(1, 1)))
		a, b := connect(t, node(t), there), connect(t, node(t), there)
		_, err := echo.Call(background, a, "x")
		require.NoError(t, err)
		_, err = other.Call(background, a, "x")
		require.NoError(t, err)
		_, err = echo.Call(background, b, "x")
		require.ErrorIs(t, err, asterisque.ErrOverloaded, "over all peers")
	})
}

// TestAttackRate_RefusedAreFree has many calls rejected at once. No rejected call takes a token
// from another call.
func TestAttackRate_RefusedAreFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := connect(t, node(t), node(t, serving(says), served(interceptors.RatePerPeer(1, 1))))
		flood := func() (ok int64) {
			var good atomic.Int64
			var wg sync.WaitGroup
			for range 500 {
				wg.Go(func() {
					if _, err := call(background, s, "x"); err == nil {
						good.Add(1)
					}
				})
			}
			wg.Wait()
			return good.Load()
		}
		for range 5 {
			require.EqualValues(t, 1, flood())
			fakeclock.Sleep(time.Second)
		}
	})
}

// subjects grants each peer its own id as the subject.
func subjects() asterisque.Option {
	return asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: p.ID}, nil
	}})
}

func TestRatePerPeer_Identity(t *testing.T) {
	tcp := func(ip string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }
	type peer struct {
		id string
		at net.Addr
	}
	for _, c := range []struct {
		name   string
		access asterisque.Option
		a, b   peer
		same   bool
	}{
		{"one subject", subjects(), peer{"alice", tcp("192.0.2.1", 1)}, peer{"alice", tcp("192.0.2.2", 1)}, true},
		{"two subjects", subjects(), peer{"alice", tcp("192.0.2.1", 1)}, peer{"bob", tcp("192.0.2.1", 1)}, false},
		{"another name without a proof", served(), peer{"alice", tcp("192.0.2.1", 1)}, peer{"bob", tcp("192.0.2.1", 2)}, true},
		{"another address", served(), peer{"alice", tcp("192.0.2.1", 1)}, peer{"alice", tcp("192.0.2.2", 1)}, false},
		{"an address of IPv4 in IPv6", served(), peer{"alice", tcp("192.0.2.1", 1)}, peer{"alice", tcp("::ffff:192.0.2.1", 1)}, true},
		{"two addresses of a /64", served(), peer{"", tcp("2001:db8::1", 1)}, peer{"", tcp("2001:db8::ffff:1", 1)}, true},
		{"two of two /64", served(), peer{"", tcp("2001:db8::1", 1)}, peer{"", tcp("2001:db8:0:1::1", 1)}, false},
		{"an address that is text", served(), peer{"", text("192.0.2.1:5")}, peer{"", tcp("192.0.2.1", 1)}, true},
		{"no network", served(), peer{"alice", text("@alice")}, peer{"bob", text("@bob")}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				there := node(t, c.access, serving(says), served(interceptors.RatePerPeer(1, 1)))
				for i, p := range []peer{c.a, c.b} {
					_, err := call(background, connectFrom(t, node(t, asterisque.WithID(p.id)), there, p.at), "x")
					require.Equal(t, i == 1 && c.same, err != nil)
				}
			})
		})
	}
}

type text string

func (text) Network() string  { return "test" }
func (a text) String() string { return string(a) }

func TestRatePerPeer_CallingSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := interceptors.RatePerPeer(1, 1)
		here, there := node(t, made(limit)), node(t, serving(says))
		s := connect(t, here, there)
		_, err := call(background, s, "x")
		require.NoError(t, err)
		_, err = call(background, s, "x")
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.False(t, err.(*asterisque.Abort).Remote)
		advice, _ := asterisque.RetryAfter(err)
		require.Equal(t, time.Second, advice)
	})
}

func TestRate_BadArguments(t *testing.T) {
	for _, c := range []struct {
		limit rate.Limit
		burst int
		ok    bool
	}{{0, 1, false}, {-1, 1, false}, {rate.Limit(math.NaN()), 1, false}, {1, 0, false}, {1, -1, false}, {1, 1, true}, {rate.Inf, 1, true}, {1e-300, 1, true}, {rate.Limit(math.Inf(1)), 1, true}} {
		for _, limit := range []func(rate.Limit, int) asterisque.Interceptor{interceptors.RatePerPeer, interceptors.RatePerFunction} {
			t.Run(fmt.Sprint(c.limit, c.burst), func(t *testing.T) {
				if !c.ok {
					require.Panics(t, func() { limit(c.limit, c.burst) })
					return
				}
				s := connect(t, node(t), node(t, serving(says), served(limit(c.limit, c.burst))))
				_, err := call(background, s, "x")
				require.NoError(t, err)
				if _, err = call(background, s, "x"); err != nil {
					advice, ok := asterisque.RetryAfter(err)
					require.True(t, ok)
					require.Greater(t, advice, time.Duration(0))
					require.LessOrEqual(t, advice, time.Hour)
				}
			})
		}
	}
}

func TestRate_AfterPeerRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		retry := interceptors.Retry(&asterisque.Retry{First: time.Millisecond})
		s := connect(t, node(t, made(retry, interceptors.RatePerPeer(1, 1))),
			node(t, serving(says), served(refusing(1, asterisque.ErrOverloaded, &attempts))))
		_, err := call(background, s, "x")
		require.NoError(t, err, "the second attempt is refused here, and the third is not")
		require.EqualValues(t, 2, attempts.Load())
	})
}
