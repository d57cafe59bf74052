package carrier_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// TestStanding_SparesPeer stops a process for an hour, shortly before it would consider its peer
// lost. When the process runs again, it reads the frames that the peer has sent meanwhile.
func TestStanding_SparesPeer(t *testing.T) {
	var takes chan struct{} // closed when the peer reads
	for name, c := range map[string]struct {
		change func(*carrier.Config)
		begin  func(r *rig)
		almost time.Duration // after which the process stops
		lives  func(r *rig)  // the activity of a live peer
		look   time.Duration // interval of looks at the peer
		rest   time.Duration // remaining time of a silent peer after that
	}{
		"the peer is silent": {
			pinging, func(*rig) {}, 24500 * time.Millisecond,
			func(r *rig) { r.wire.says(message.Ping{N: 1}) }, time.Second, 4 * time.Second,
		},
		"the peer takes nothing": {
			nil,
			func(r *rig) {
				r.wire.write = func() {
					select {
					case <-r.wire.closed:
					case <-takes:
					}
				}
				r.sends(1, carrier.Now)
			}, 62 * time.Second,
			func(r *rig) { close(takes) }, 7500 * time.Millisecond, 20 * time.Second,
		},
	} {
		for _, lives := range []bool{true, false} {
			t.Run(name+map[bool]string{true: ", and lives", false: ""}[lives], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var stood atomic.Int64
					r := newRig(t, func(cfg *carrier.Config) {
						if c.change != nil {
							c.change(cfg)
						}
						now := cfg.Now
						cfg.Settings.Now = func() time.Duration { return now() + time.Duration(stood.Load()) }
					})
					takes = make(chan struct{})
					r.run()
					c.begin(r)
					fakeclock.Sleep(c.almost)
					require.NoError(t, r.ctx.Err())
					stood.Add(int64(time.Hour))
					fakeclock.Sleep(c.look) // a look at the peer falls into it
					require.NoError(t, r.ctx.Err())
					if lives {
						c.lives(r)
						fakeclock.Sleep(20 * time.Second)
						require.NoError(t, r.ctx.Err())
						return
					}
					fakeclock.Sleep(c.rest)
					require.ErrorIs(t, context.Cause(r.ctx), codec.ErrUnavailable, "a dead peer is still lost")
				})
			})
		}
	}
}

// TestStanding_KeepsRemainingTime has a peer that is silent for 10 of 24 seconds before the process
// stops.
func TestStanding_KeepsRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stood atomic.Int64
		r := newRig(t, func(cfg *carrier.Config) {
			pinging(cfg)
			now := cfg.Now
			cfg.Settings.Now = func() time.Duration { return now() + time.Duration(stood.Load()) }
		}).run()
		fakeclock.Sleep(10 * time.Second)
		stood.Add(int64(time.Hour))
		fakeclock.Sleep(12 * time.Second)
		require.NoError(t, r.ctx.Err())
		fakeclock.Sleep(4 * time.Second)
		require.Error(t, r.ctx.Err())
	})
}

// TestStanding_SparesApplication has an application that takes nothing at the soft limit for nearly
// as long as permitted.
func TestStanding_SparesApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stood atomic.Int64
		r := newRig(t, func(cfg *carrier.Config) {
			now := cfg.Now
			cfg.Settings.Now = func() time.Duration { return now() + time.Duration(stood.Load()) }
		}).run()
		r.inbound.Add(1)
		r.inbound.Add(1)
		fakeclock.Sleep(58 * time.Second)
		stood.Add(int64(time.Hour))
		fakeclock.Sleep(4 * time.Second) // one look falls into it
		require.NoError(t, r.ctx.Err())
		fakeclock.Sleep(5 * time.Second)
		require.ErrorIs(t, context.Cause(r.ctx), codec.ErrStalled)
	})
}

// lingering is a Wire whose looks are slow: each calls looked, which may stop the process.
type lingering struct {
	*scripted
	looked func()
}

func (w *lingering) Progress() (received, sent uint64) { return 1, 1 }
func (w *lingering) Receiving() int                    { w.looked(); return 0 }

// wantEnd waits for the end of the session, for no longer than d.
func (r *rig) wantEnd(d time.Duration) {
	r.t.Helper()
	select {
	case <-r.ctx.Done():
	case <-time.After(d):
		require.Fail(r.t, "the peer is not given up")
	}
}

// TestStanding_SlowLooksJudgeAllTheSame has a Wire that takes longer to be looked at than it is
// between two looks, and whose peer is silent.
func TestStanding_SlowLooksJudgeAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		r := newRig(t, func(cfg *carrier.Config) {
			pinging(cfg)
			slow := func() { fakeclock.Sleep(1500 * time.Millisecond) }
			cfg.Wire = &lingering{cfg.Wire.(*scripted), slow}
		}).run()
		r.wantEnd(5 * time.Minute)
		require.InDelta(t, 30, time.Since(begin).Seconds(), 15)
	})
}

// TestStanding_BetweenTwoLooks has a process that stands for an hour after it has looked at one of
// two Wires, whose peers have been silent for a while.
func TestStanding_BetweenTwoLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stood atomic.Int64
		begin, stands := time.Now(), false
		looked := func() {
			if !stands && time.Since(begin) > 20*time.Second {
				stands = true
				stood.Add(int64(time.Hour))
			}
		}
		first := newRig(t, nil).run()
		var all []*rig
		for range 2 {
			all = append(all, newRig(t, func(cfg *carrier.Config) {
				pinging(cfg)
				cfg.Wire = &lingering{cfg.Wire.(*scripted), looked}
				cfg.Settings.Keepalive = &first.lookout
				cfg.Settings.Now = func() time.Duration { return time.Since(begin) + 1 + time.Duration(stood.Load()) }
			}).run())
		}
		fakeclock.Sleep(22 * time.Second)
		require.NotZero(t, stood.Load())
		for _, r := range all {
			require.NoError(t, r.ctx.Err())
		}
		fakeclock.Sleep(5 * time.Second)
		for _, r := range all {
			require.Error(t, r.ctx.Err())
		}
	})
}

// TestStanding_ForEverJudgesAllTheSame has a process that never runs in time.
func TestStanding_ForEverJudgesAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		r := newRig(t, func(cfg *carrier.Config) {
			pinging(cfg)
			now := cfg.Now
			cfg.Settings.Now = func() time.Duration { return 3 * now() }
		}).run()
		r.wantEnd(5 * time.Minute)
		require.InDelta(t, 27, time.Since(begin).Seconds(), 9)
	})
}
