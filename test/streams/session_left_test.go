package streams

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// chatty is a function that sends Blocks which its caller may not want.
const chatty = 71

func chattyService(blocks, size int) *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(chatty, "chatty", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		for range blocks {
			if err := p.Send(ctx, make([]byte, size)); err != nil {
				return nil, err
			}
		}
		return []byte("result"), nil
	})
	return svc
}

// chattySession returns a session in a bubble to a node that has chatty.
func chattySession(t *testing.T, blocks, size int, opts ...asterisque.Option) *asterisque.Session {
	here, there := asterisque.NewNode(opts...), asterisque.NewNode(asterisque.WithService(chattyService(blocks, size)))
	t.Cleanup(func() { here.Close(); there.Close() })
	s, _ := asterisquetest.ConnectNodes(t, here, there)
	return s
}

// resultOnly makes a call of chatty, and takes its result alone.
func resultOnly(t *testing.T, ctx context.Context, s *asterisque.Session) *pipe.Pipe {
	t.Helper()
	p, err := s.Open(ctx, chatty, nil)
	require.NoError(t, err)
	result, err := p.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, "result", string(result))
	return p
}

func TestLeft_RoomReturns(t *testing.T) {
	const calls = 1000
	small := asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 1 << 20}}, MaxMessage: 64 << 10})
	for name, c := range map[string]struct {
		perCall bool          // each call has a context of its own, which ends
		within  time.Duration // for all calls
	}{
		"when the context of Open ends":  {true, time.Second},
		"after ten seconds without Recv": {false, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := chattySession(t, 1, 500, small)
				begin := time.Now()
				for range calls {
					if !c.perCall {
						resultOnly(t, testkit.Background, s)
						continue
					}
					ctx, cancel := context.WithCancel(testkit.Background)
					resultOnly(t, ctx, s)
					cancel()
					synctest.Wait()
				}
				require.Less(t, time.Since(begin), c.within)
				require.NoError(t, s.Err())
				if c.perCall {
					require.Zero(t, s.Stats().Inbound)
				}
			})
		})
	}
}

func TestLeft_ResultFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := chattySession(t, 3, 2000)
		p := resultOnly(t, testkit.Background, s)
		for range 3 {
			b, err := p.Recv(testkit.Background)
			require.NoError(t, err)
			require.Len(t, b.Payload, 2000)
		}
		_, err := p.Recv(testkit.Background)
		require.Equal(t, io.EOF, err)
		require.Zero(t, s.Stats().Inbound)
	})
}

// Blocks that no program takes fill the soft limit of a session without windows.
func TestLeft_SoftLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stops := asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Messages: 8}}})
		s := chattySession(t, 1, 100, stops)
		var all []*pipe.Pipe
		for range 20 {
			all = append(all, resultOnly(t, testkit.Background, s))
		}
		require.NoError(t, s.Err())
		_, err := all[0].Recv(testkit.Background)
		require.ErrorIs(t, err, codec.ErrStalled, "the first ones were dropped")
		_, err = all[19].Recv(testkit.Background)
		require.NoError(t, err)
	})
}
