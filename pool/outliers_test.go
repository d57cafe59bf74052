package pool_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/pool"
)

// never is the duration of calls on a mute server.
const never = 1000 * time.Hour

// fleet is a pool in a bubble of servers in memory, by their names.
type fleet struct {
	*pool.Pool
	servers map[string]*lagging
}

// newFleet starts servers with these durations of calls, and adds names without a server.
func newFleet(t *testing.T, takes map[string]time.Duration, dead ...string) *fleet {
	f := &fleet{servers: make(map[string]*lagging)}
	var urls []string
	for name, d := range takes {
		s := newLagging(t, name, d)
		f.servers[name], urls = s, append(urls, s.url)
	}
	for _, name := range dead {
		urls = append(urls, "mem://"+name)
	}
	f.Pool = newPool(t, urls, pool.Config{})
	synctest.Wait()
	return f
}

func (f *fleet) close() {
	f.Close()
	for _, s := range f.servers {
		s.node.Close()
	}
}

// served returns the number of calls of each server.
func (f *fleet) served() map[string]int64 {
	counts := make(map[string]int64)
	for name, s := range f.servers {
		counts[name] = s.served.Load()
	}
	return counts
}

// rests reports whether a server rests.
func (f *fleet) rests(name string) bool {
	for _, s := range f.Servers() {
		if s.URL == "mem://"+name {
			return !s.RestsUntil.IsZero()
		}
	}
	return false
}

// load makes callers call for a while, with a time to live and with a deadline in turns, and
// returns the number of calls that ended.
func (f *fleet) load(callers int, d, limit time.Duration) (calls int64) {
	var all sync.WaitGroup
	var mu sync.Mutex
	end := time.Now().Add(d)
	for range callers {
		all.Go(func() {
			n := int64(0)
			for ; time.Now().Before(end); n++ {
				if n%2 == 0 {
					whoami.Call(background, f, 0, asterisque.WithTTL(limit))
					continue
				}
				ctx, cancel := context.WithTimeout(background, limit)
				whoami.Call(ctx, f, 0)
				cancel()
			}
			mu.Lock()
			calls += n
			mu.Unlock()
		})
	}
	all.Wait()
	return calls
}

// TestShares_SlowDeadAndMuteServers has a server that is 100 times slower, a missing server, and a
// server that never answers, in each combination, with one to three good ones.
func TestShares_SlowDeadAndMuteServers(t *testing.T) {
	const ms = time.Millisecond
	for _, by := range []struct {
		callers      int
		limit, lasts time.Duration
	}{{1, time.Second, 20 * time.Second}, {6, 100 * ms, 5 * time.Second}, {6, 8 * ms, 5 * time.Second}, {10, time.Second, 5 * time.Second}} {
		for good := 1; good <= 3; good++ {
			for bad := range 8 {
				takes, names := make(map[string]time.Duration), []string{fmt.Sprint(good, " good")}
				for i := range good {
					takes[fmt.Sprint("good-", i)] = 5 * ms
				}
				var dead []string
				if bad&1 != 0 {
					takes["slow"], names = 500*ms, append(names, "slow")
				}
				if bad&2 != 0 {
					takes["mute"], names = never, append(names, "mute")
				}
				if bad&4 != 0 {
					dead, names = []string{"dead"}, append(names, "dead")
				}
				if race.Enabled && (bad+good+by.callers)%6 != 0 {
					continue // together they take minutes, one bubble after the other
				}
				name := fmt.Sprintf("%d callers of %v, %s", by.callers, by.limit, strings.Join(names, ", "))
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := newFleet(t, takes, dead...)
						defer f.close()
						total := f.load(by.callers, time.Second, by.limit)
						muteAt, totalAt := f.served()["mute"], total
						total += f.load(by.callers, by.lasts, by.limit)
						counts := f.served()
						require.LessOrEqual(t, float64(counts["slow"])/float64(total), 0.01, "the slow one: %v", counts)
						require.LessOrEqual(t, float64(counts["mute"]-muteAt)/float64(total-totalAt), 0.02,
							"the mute one after a second: %v, with %d then", counts, muteAt)
						for i := range good {
							require.Greater(t, float64(counts[fmt.Sprint("good-", i)])/float64(total), 0.5/float64(good+1), "a good one: %v", counts)
						}
					})
				})
			}
		}
	}
}

// TestRests_MuteServer has a server that stops answering, and answers again later.
func TestRests_MuteServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, map[string]time.Duration{"good": 10 * time.Millisecond, "other": 10 * time.Millisecond})
		defer f.close()
		f.load(6, time.Second, 100*time.Millisecond)
		require.Greater(t, f.served()["other"], int64(100))
		f.servers["other"].takes.Store(int64(never))
		before := f.served()["other"]
		f.load(6, time.Minute, time.Second)
		require.LessOrEqual(t, f.served()["other"]-before, int64(15), "a few, and one on trial after each rest")

		f.servers["other"].takes.Store(int64(10 * time.Millisecond))
		for before = f.served()["other"]; f.served()["other"] == before; {
			f.load(6, 100*time.Millisecond, time.Second)
		}
		before = f.served()["other"]
		total := f.load(6, 2*time.Second, time.Second)
		require.Greater(t, f.served()["other"]-before, total/6, "about its share again, after one good call")
	})
}

// TestRests_MuteServerOneCaller has one caller, which calls a chosen server and any server in
// turns.
func TestRests_MuteServerOneCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, map[string]time.Duration{"good": time.Millisecond, "mute": never})
		defer f.close()
		for range 6 {
			require.False(t, f.rests("mute"))
			_, err := whoami.Call(background, f.At("mem://mute"), 0, asterisque.WithTTL(100*time.Millisecond))
			require.ErrorIs(t, err, asterisque.ErrExpired)
			_, err = whoami.Call(background, f.At("mem://good"), 0)
			require.NoError(t, err)
		}
		require.True(t, f.rests("mute"))

		f.servers["mute"].takes.Store(int64(time.Millisecond))
		fakeclock.Sleep(time.Second)
		before := f.served()["mute"]
		total := f.load(6, time.Second, 100*time.Millisecond)
		require.Greater(t, f.served()["mute"]-before, total/6, "its latency is as of the call on trial")
	})
}

// TestRests_ServerThatAnswersOtherCalls has a server with some calls that expire, while it answers
// other calls.
func TestRests_ServerThatAnswersOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, map[string]time.Duration{"some": time.Millisecond, "all": time.Millisecond})
		defer f.close()
		var long sync.WaitGroup
		for i := range 20 {
			long.Go(func() {
				fakeclock.Sleep(100*time.Millisecond + time.Duration(i)*time.Microsecond)
				whoami.Call(background, f.At("mem://some"), 10_000, asterisque.WithTTL(100*time.Millisecond))
			})
		}
		f.load(6, 300*time.Millisecond, time.Second)
		long.Wait()
		require.False(t, f.rests("some"))
	})
}

// TestRests_CallsThatBlameNoServer has callers that cancel, and servers that are all slow.
func TestRests_CallsThatBlameNoServer(t *testing.T) {
	const ms = time.Millisecond
	some := func(n int, d time.Duration) map[string]time.Duration {
		takes := make(map[string]time.Duration)
		for i := range n {
			takes[fmt.Sprint("same-", i)] = d
		}
		return takes
	}
	all := func(d time.Duration) map[string]time.Duration { return some(3, d) }
	for name, c := range map[string]struct {
		callers int
		limits  []time.Duration // of the calls, in turn
		cancel  bool            // callers cancel themselves
		takes   map[string]time.Duration
		then    map[string]time.Duration // after a second; nil: the same
		more    int                      // maximum of additional milliseconds of a call
		burst   int                      // calls at once, each 100 ms, that take too long
	}{
		"callers that cancel":       {30, []time.Duration{20 * ms}, true, map[string]time.Duration{"a": 5 * ms, "b": never}, nil, 0, 0},
		"one server":                {30, []time.Duration{20 * ms}, false, map[string]time.Duration{"a": never}, nil, 0, 0},
		"all are mute":              {30, []time.Duration{20 * ms}, false, all(never), nil, 0, 0},
		"all are slow":              {30, []time.Duration{20 * ms}, false, all(50 * ms), nil, 0, 0},
		"all are slow for many":     {30, []time.Duration{20 * ms}, false, all(5 * ms), nil, 40, 0},
		"all become slow":           {120, []time.Duration{50 * ms}, false, some(12, 20*ms), some(12, 100*ms), 20, 0},
		"some wait too little":      {30, []time.Duration{20 * ms, time.Second}, false, all(50 * ms), nil, 0, 0},
		"a few wait too little":     {3, []time.Duration{20 * ms, 20 * ms, 20 * ms, 20 * ms, 20 * ms, 20 * ms, time.Second}, false, all(50 * ms), nil, 10, 0},
		"one caller in a hurry":     {1, []time.Duration{20 * ms, 20 * ms, 20 * ms, time.Second}, false, all(50 * ms), nil, 10, 0},
		"many calls that take long": {10, []time.Duration{20 * ms}, false, all(5 * ms), nil, 0, 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, c.takes)
				defer f.close()
				begin, all := time.Now(), sync.WaitGroup{}
				for i := range c.callers {
					all.Go(func() {
						for n := i; time.Since(begin) < 3*time.Second; n++ {
							ctx, cancel := context.WithTimeout(background, c.limits[n%len(c.limits)])
							if c.cancel {
								cancel()
								ctx, cancel = context.WithCancel(background)
								time.AfterFunc(c.limits[n%len(c.limits)], cancel)
							}
							whoami.Call(ctx, f, rand.IntN(c.more+1))
							cancel()
						}
					})
				}
				all.Go(func() {
					for time.Since(begin) < 3*time.Second {
						fakeclock.Sleep(100*ms + time.Duration(rand.IntN(1000))*time.Microsecond)
						for range c.burst {
							all.Go(func() { whoami.Call(background, f, 1000, asterisque.WithTTL(20*ms)) })
						}
					}
				})
				all.Go(func() {
					for time.Since(begin) < 3*time.Second {
						for server, d := range c.then {
							if time.Since(begin) >= time.Second {
								f.servers[server].takes.Store(int64(d))
							}
						}
						for server := range f.servers {
							if f.rests(server) {
								t.Errorf("%s rests after %v", server, time.Since(begin))
								return
							}
						}
						fakeclock.Sleep(ms)
					}
				})
				all.Wait()
			})
		})
	}
}
