package carrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// pinging is a change for newRig: a Ping after 8 seconds, and a lost peer after 24.
func pinging(cfg *carrier.Config) {
	cfg.PingInterval, cfg.PingTimeout, cfg.Pings.Dialled = 8*time.Second, 24*time.Second, true
}

func TestLiveness_SilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pinging).run()
		begin := time.Now()
		m, err := message.ParseControl((<-r.wire.writes)[0])
		require.NoError(t, err)
		require.IsType(t, message.Ping{}, m)
		require.InDelta(t, 8, time.Since(begin).Seconds(), 1)
		<-r.ctx.Done()
		require.InDelta(t, 24, time.Since(begin).Seconds(), 2)
		require.ErrorIs(t, context.Cause(r.ctx), codec.ErrUnavailable)
	})
}

func TestPong_MeasuresRoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pinging)
		r.up.receive = func(_ message.Type, f []byte) error {
			m, _ := message.ParseControl(f)
			r.Pong(m.(message.Pong).N)
			return nil
		}
		r.run()
		ping, err := message.ParseControl((<-r.wire.writes)[0])
		require.NoError(t, err)
		fakeclock.Sleep(30 * time.Millisecond)
		r.wire.says(message.Pong{N: 7}, message.Pong{N: ping.(message.Ping).N})
		r.wantStory("Control", "Control")
		require.Equal(t, 30*time.Millisecond, r.Path().RoundTrip)
	})
}

func TestPing_RateOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.up.receive = func(_ message.Type, f []byte) error {
			m, _ := message.ParseControl(f)
			r.Ping(m.(message.Ping).N)
			return nil
		}
		r.run()
		for n := uint64(1); n <= 300; n++ {
			r.wire.says(message.Ping{N: n})
			synctest.Wait()
		}
		require.Len(t, r.wire.writes, 100)
		for range 100 {
			<-r.wire.writes
		}
		fakeclock.Sleep(time.Second)
		m, err := message.ParseControl((<-r.wire.writes)[0])
		require.NoError(t, err)
		require.Equal(t, message.Pong{N: 300}, m, "the Pong of the newest answers all other Pings")
		require.Empty(t, r.wire.writes)
	})
}

func TestLiveness_BlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.wire.write = func() { <-r.wire.closed }
		r.run()
		begin := time.Now()
		require.NoError(t, r.sends(1, carrier.Now))
		<-r.ctx.Done()
		require.InDelta(t, 60, time.Since(begin).Seconds(), 8)
		require.ErrorIs(t, context.Cause(r.ctx), codec.ErrUnavailable)
	})
}

func TestStall_EndsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, pinging)
		r.wire.says(message.Ping{N: 1})
		r.run()
		r.inbound.Add(1)
		r.inbound.Add(1)
		keep := time.AfterFunc(50*time.Second, func() { r.inbound.Remove(1, 1); r.inbound.Add(1) })
		defer keep.Stop()
		feed := time.NewTicker(5 * time.Second)
		defer feed.Stop()
		begin := time.Now()
		for r.ctx.Err() == nil {
			select {
			case <-feed.C:
				r.wire.says(message.Ping{N: 1})
			case <-r.ctx.Done():
			}
		}
		require.ErrorIs(t, context.Cause(r.ctx), codec.ErrStalled)
		require.GreaterOrEqual(t, time.Since(begin), 100*time.Second, "something was taken after 50 s")
	})
}
