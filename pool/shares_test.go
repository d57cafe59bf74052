package pool_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// lagging is a server in memory with a given duration of calls, plus the parameter in milliseconds.
// It is suitable for synctest.
type lagging struct {
	url    string
	node   *asterisque.Node
	takes  atomic.Int64 // nanoseconds
	served atomic.Int64
	refuse atomic.Bool // with ErrOverloaded
}

func newLagging(t *testing.T, name string, takes time.Duration) *lagging {
	l := &lagging{url: "mem://" + name}
	l.takes.Store(int64(takes))
	svc := asterisque.NewService()
	whoami.Handle(svc, func(ctx context.Context, more int) (string, error) {
		l.served.Add(1)
		if l.refuse.Load() {
			return "", &asterisque.Abort{Code: asterisque.ErrOverloaded.Code, Message: "too much", Ran: codec.Refused}
		}
		select { // in a bubble
		case <-time.After(time.Duration(l.takes.Load()) + time.Duration(more)*time.Millisecond):
		case <-ctx.Done():
			return "", ctx.Err()
		}
		return name, nil
	})
	l.node = asterisque.NewNode(asterisque.WithService(svc))
	ln, err := wire.Listen(background, l.url, wire.Options{})
	require.NoError(t, err)
	go l.node.Serve(background, ln) // ends with the node
	return l
}

// TestShares_FollowLatency makes 50 callers call for a while.
func TestShares_FollowLatency(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		takes    []time.Duration
		callers  int
		low, top float64 // of the last one, of an even share
	}{
		"even":                                {[]time.Duration{5 * ms, 5 * ms, 5 * ms}, 50, 0.9, 1.1},
		"even, few callers":                   {[]time.Duration{5 * ms, 5 * ms, 5 * ms}, 6, 0.9, 1.1},
		"one is ten times slower":             {[]time.Duration{5 * ms, 5 * ms, 50 * ms}, 50, 0.005, 0.2},
		"one is ten times slower, one caller": {[]time.Duration{5 * ms, 5 * ms, 50 * ms}, 1, 0.0001, 0.2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var servers []*lagging
				var urls []string
				for i, takes := range c.takes {
					s := newLagging(t, fmt.Sprint("shares-", i), takes)
					defer s.node.Close()
					servers, urls = append(servers, s), append(urls, s.url)
				}
				p := newPool(t, urls, pool.Config{})
				synctest.Wait()
				begin := time.Now()
				var all sync.WaitGroup
				for range c.callers {
					all.Go(func() {
						for time.Since(begin) < 4*time.Second {
							if _, err := whoami.Call(background, p, 0); err != nil {
								t.Error(err)
								return
							}
						}
					})
				}
				all.Wait()
				total := 0.0
				for _, s := range servers {
					total += float64(s.served.Load())
				}
				share := float64(servers[len(servers)-1].served.Load()) / total * float64(len(servers))
				require.GreaterOrEqual(t, share, c.low)
				require.LessOrEqual(t, share, c.top)
				p.Close()
			})
		})
	}
}

// TestShares_ServerThatPauses has a server whose calls take three seconds for a moment.
func TestShares_ServerThatPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		takes := map[string]time.Duration{"a": 5 * time.Millisecond, "b": 5 * time.Millisecond, "pauses": 5 * time.Millisecond}
		f := newFleet(t, takes)
		defer f.close()
		f.load(20, time.Second, time.Minute)
		f.servers["pauses"].takes.Store(int64(3 * time.Second))
		f.load(20, 100*time.Millisecond, time.Minute)
		f.servers["pauses"].takes.Store(int64(5 * time.Millisecond))
		f.load(20, 10*time.Second, time.Minute)
		before := f.served()["pauses"]
		total := f.load(20, time.Second, time.Minute)
		require.Greater(t, f.served()["pauses"]-before, total/6, "about its share again")
	})
}

// TestShares_ServerThatStaysSlow has a server that is 100 times slower for minutes.
func TestShares_ServerThatStaysSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, map[string]time.Duration{"good": 5 * time.Millisecond, "slow": 500 * time.Millisecond})
		defer f.close()
		f.load(1, 3*time.Minute, time.Minute)
		require.LessOrEqual(t, f.served()["slow"], int64(7), "fewer and fewer calls, to learn whether it is still slow")
		require.GreaterOrEqual(t, f.served()["slow"], int64(4))
	})
}

// TestShares_SessionReplaced has a slow server whose successor at the same address is fast.
func TestShares_SessionReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, map[string]time.Duration{"a": 5 * time.Millisecond, "b": 5 * time.Millisecond, "replaced": time.Second})
		defer f.close()
		f.load(6, 20*time.Second, time.Minute)
		require.Less(t, f.served()["replaced"], int64(10))
		f.servers["replaced"].node.Close()
		f.servers["replaced"] = newLagging(t, "replaced", 5*time.Millisecond)
		f.load(6, 5*time.Second, time.Minute) // it is connected again
		before := f.served()["replaced"]
		total := f.load(6, time.Second, time.Minute)
		require.Greater(t, f.served()["replaced"]-before, total/6, "its share")
	})
}

// TestRests_RefusingServer has two servers, one of which rejects all calls for a while.
func TestRests_RefusingServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, bad := newLagging(t, "rests-good", time.Millisecond), newLagging(t, "rests-bad", time.Millisecond)
		defer good.node.Close()
		defer bad.node.Close()
		p := newPool(t, []string{good.url, bad.url}, pool.Config{})
		synctest.Wait()
		call := func(n int) {
			for range n {
				name, err := whoami.Call(background, p, 0)
				require.NoError(t, err)
				_ = name
			}
		}
		bad.refuse.Store(true)
		call(1000)
		require.LessOrEqual(t, bad.served.Load(), int64(10), "after five refusals it rests, and then has one call at a time")
		for range 100 {
			before := bad.served.Load()
			fakeclock.Sleep(time.Second)
			call(10)
			require.LessOrEqual(t, bad.served.Load(), before+1, "one call on trial")
		}
		require.LessOrEqual(t, bad.served.Load(), int64(20), "longer and longer rests")
		require.GreaterOrEqual(t, bad.served.Load(), int64(8))

		bad.refuse.Store(false)
		fakeclock.Sleep(time.Minute)
		before := bad.served.Load()
		call(1000)
		require.Greater(t, bad.served.Load(), before+300, "its share again")
		p.Close()
	})
}

// TestRests_AllServers has servers that reject all calls.
func TestRests_AllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		only := newLagging(t, "rests-only", time.Millisecond)
		defer only.node.Close()
		p := newPool(t, []string{only.url}, pool.Config{})
		synctest.Wait()
		only.refuse.Store(true)
		for range 20 {
			_, err := whoami.Call(background, p, 0)
			require.ErrorIs(t, err, asterisque.ErrOverloaded)
		}
		only.refuse.Store(false)
		_, err := whoami.Call(background, p, 0)
		require.NoError(t, err)
		p.Close()
	})
}

// TestBudget_Retries has two servers that reject all calls.
func TestBudget_Retries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var urls []string
		var all []*lagging
		for i := range 2 {
			s := newLagging(t, "budget-"+strconv.Itoa(i), time.Millisecond)
			s.refuse.Store(true)
			defer s.node.Close()
			urls, all = append(urls, s.url), append(all, s)
		}
		p := newPool(t, urls, pool.Config{Budget: asterisque.NewRetryBudget(0.1, 10)})
		synctest.Wait()
		for range 1000 {
			_, err := whoami.Call(background, p, 0)
			require.ErrorIs(t, err, asterisque.ErrOverloaded)
			require.True(t, asterisque.Repeatable(err))
		}
		attempts := all[0].served.Load() + all[1].served.Load()
		require.LessOrEqual(t, attempts, int64(1000+100+10))
		p.Close()
	})
}
