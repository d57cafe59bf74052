package limits

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// SetLimits to a tenth while sleeping handlers hold more than that: answers are still read, further
// streams still begin, and the session does not stall.
func TestSetLimits_ToATenth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, size = 40, 60 << 10
		woken := make(chan struct{})
		svc := testkit.EchoService()
		svc.Handle(1, "sleep", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			<-woken
			for range streams {
				b, err := p.Recv(ctx)
				if err != nil {
					return nil, nil // the end
				}
				b.Release()
			}
			return nil, nil
		})
		many := asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(32<<20, 256<<20)})
		here, there := asterisque.NewNode(many, asterisque.WithService(testkit.EchoService())), asterisque.NewNode(many, asterisque.WithService(svc))
		defer func() { here.Close(); there.Close() }()
		dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
		sleeper := func() *pipe.Pipe {
			p, err := dialled.Open(testkit.Background, 1, nil)
			require.NoError(t, err)
			return p
		}
		var pipes []*pipe.Pipe
		for range streams {
			p := sleeper()
			require.NoError(t, p.Send(testkit.Background, make([]byte, size)))
			pipes = append(pipes, p)
		}
		synctest.Wait()
		require.Greater(t, accepted.Stats().Inbound.Bytes, 2<<20)
		tenth := testkit.BytesOf(1<<20, 256<<20)
		require.NoError(t, accepted.SetLimits(tenth, limits.Limits{}))
		in := accepted.Limits(asterisque.Inbound)
		require.Equal(t, tenth.Soft, in.Soft)

		begin := time.Now()
		_, err := testkit.Echo.Call(testkit.Background, accepted, "answer behind what the sleepers do not take")
		require.NoError(t, err)
		more := sleeper()
		require.NoError(t, more.Send(testkit.Background, make([]byte, 1<<10)))
		_, err = testkit.Echo.Call(testkit.Background, dialled, "call")
		require.NoError(t, err)
		require.Zero(t, time.Since(begin), "none of them has waited")
		fakeclock.Sleep(5 * time.Minute)
		require.NoError(t, accepted.Err(), "it is no stall")
		require.Zero(t, accepted.Stats().Stops)

		close(woken)
		for _, p := range append(pipes, more) {
			require.NoError(t, p.CloseSend())
			_, err := p.Result(testkit.Background)
			require.NoError(t, err)
		}
		require.LessOrEqual(t, accepted.Stats().Classes.Elastic.Promised, accepted.Stats().Classes.Elastic.Room)
	})
}
