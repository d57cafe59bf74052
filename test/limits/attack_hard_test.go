package limits

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
)

// The outbound hard limit is lowered below a message that waits to be sent: the message is
// rejected, and holds up no other one.
func TestSetLimits_BelowWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := testkit.StuckPeer(t, asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(256<<10, 8<<20)}))
		call := func(n int) chan error {
			done := make(chan error, 1)
			go func() {
				_, err := s.Call(testkit.Background, 1, make([]byte, n))
				done <- err
			}()
			synctest.Wait()
			return done
		}
		call(300 << 10) // up to the soft limit
		large := call(1<<20 - 100)
		call(10)
		require.Equal(t, 2, s.Stats().WaitOutbound.Now)
		require.NoError(t, s.SetLimits(s.Limits(asterisque.Inbound), testkit.BytesOf(128<<10, 512<<10)))
		go p.Swallow()
		synctest.Wait()
		require.Zero(t, s.Stats().WaitOutbound.Now, "nothing else is left to send")
		require.ErrorIs(t, <-large, asterisque.ErrTooLarge)
		require.NoError(t, s.Err())
	})
}

// The outbound hard limit is lowered below an answer that waits to be sent: its caller gets an
// error, and the answers behind it are sent.
func TestSetLimits_BelowParked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		asterisque.Func[int, []byte](1, "gives").Handle(svc, func(_ context.Context, n int) ([]byte, error) { return make([]byte, n), nil })
		hello := testkit.Hello()
		hello.MaxMessage = 4 << 20
		p, s := testkit.StuckPeerThatSays(t, hello, asterisque.WithService(svc), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}),
			asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(256<<10, 8<<20)}))
		for i, n := range []int{300 << 10, 1<<20 - 100, 100} {
			params, err := codec.CBOR.Append(nil, n)
			require.NoError(t, err)
			p.Send(&message.Open{Pipe: uint64(2 * i), Function: 1, Params: params})
			synctest.Wait()
		}
		require.Equal(t, 2, s.Stats().Parked)
		require.NoError(t, s.SetLimits(s.Limits(asterisque.Inbound), testkit.BytesOf(128<<10, 512<<10)))
		closed := make(map[uint64]*codec.Abort)
		go func() {
			for {
				f, err := p.W.ReadFrame(1 << 20)
				if err != nil {
					return
				}
				if c, err := message.ParseClose(f); err == nil {
					closed[c.Pipe] = c.Abort
				}
			}
		}()
		synctest.Wait()
		st := s.Stats()
		require.Zero(t, st.Parked, "nothing else is left to send")
		require.Zero(t, st.Holding)
		require.Equal(t, limits.Amount{}, st.Outbound)
		require.Len(t, closed, 2, "the first one came in parts")
		require.ErrorIs(t, closed[2], asterisque.ErrTooLarge)
		require.Equal(t, codec.MaybeRan, closed[2].Ran)
		require.Nil(t, closed[4])
	})
}

// The outbound hard limit is below the smallest answer: the first one ends the session.
func TestSetLimits_BelowRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := testkit.StuckPeer(t)
		require.NoError(t, s.SetLimits(s.Limits(asterisque.Inbound), testkit.BytesOf(50, 100)))
		p.Send(&message.Open{Pipe: 0, Function: 999})
		synctest.Wait()
		require.ErrorIs(t, s.Err(), asterisque.ErrHardLimit)
	})
}

// The inbound soft limit is lowered below the guaranteed windows: the classes keep their room, and
// of the elastic one the extra credit is left.
func TestSetLimits_BelowWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := testkit.StuckPeer(t, asterisque.WithLimits(asterisque.Limits{MaxMessage: 64 << 10, Inbound: testkit.BytesOf(32<<20, 1<<30)}))
		before := s.Stats().Classes
		require.NoError(t, s.SetLimits(testkit.BytesOf(1<<20, 1<<30), s.Limits(asterisque.Outbound)))
		after := s.Stats().Classes
		require.Equal(t, before.Elastic.Promised, after.Elastic.Room)
		after.Elastic.Room = before.Elastic.Room
		require.Equal(t, before, after)
	})
}
