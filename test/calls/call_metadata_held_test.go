package calls

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// Metadata of a running call counts beside its parameters, until the call is over.
func TestMetadata_RunningCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, started, _ := testkit.BlockService()
		conn, _, _, there := testkit.Link(t, svc, asterisque.ReconnectConfig{})
		var ends []context.CancelFunc
		for range 10 {
			ctx, end := context.WithCancel(asterisque.ContextWithMetadata(testkit.Background, fullMetadata()))
			go testkit.Block.Call(ctx, conn, "")
			<-started
			ends = append(ends, end)
		}
		served := there.Sessions()[0]
		require.Greater(t, served.Stats().Holding, 10*4096)
		require.Less(t, served.Stats().Holding, 10*(4096+2048))
		for _, end := range ends {
			end()
		}
		synctest.Wait()
		require.Zero(t, served.Stats().Holding)
	})
}

// A repetition is identified by its key, its function and its parameters. With other metadata, the
// call still runs once, with the metadata of the first one.
func TestMetadata_OfRepetition(t *testing.T) {
	var n notes
	svc := asterisque.NewService()
	testkit.Work.Handle(svc, func(ctx context.Context, i int) (int, error) {
		n.add(asterisque.MetadataOf(ctx))
		return i, nil
	})
	p, _ := dialRawMetadata(t, asterisque.WithService(svc))
	for i, m := range []asterisque.Metadata{{"k": "first"}, {"k": "second"}, nil} {
		o := testkit.Keyed(uint64(2*i), "key")
		o.Meta.Metadata = encoded(t, m)
		p.Send(o)
		c := p.Answer()
		require.Equal(t, o.Pipe, c.Pipe)
		require.Nil(t, c.Abort)
	}
	require.Equal(t, []asterisque.Metadata{{"k": "first"}}, n.all())
}

// A call that exceeds the largest message of the peer with its metadata is not sent, and not
// without it either.
func TestMetadata_LargestMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := helloMetadata()
		h.MaxMessage = 8 << 10
		node := asterisque.NewNode()
		defer node.Close()
		p, _ := testkit.RawTo(t, node, h)
		s := node.Sessions()[0]
		_, err := s.Call(testkit.Background, 1, make([]byte, 5<<10), asterisque.WithMetadata(fullMetadata()))
		require.ErrorIs(t, err, asterisque.ErrTooLarge)
		require.True(t, asterisque.Repeatable(err))
		done := make(chan error, 1)
		go func() {
			_, err := s.Call(testkit.Background, 1, make([]byte, 5<<10))
			done <- err
		}()
		p.Send(&message.Close{Pipe: p.Open().Pipe})
		require.NoError(t, <-done)
	})
}

// A caller that cancels, or reaches its deadline, while metadata waits to be sent leaves nothing.
func TestMetadata_GivenUpCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := helloMetadata()
		h.Window, h.Opens, h.MaxMessage = 512, 6<<10, 5<<10
		node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, h)
		defer p.W.Close()
		s := node.Sessions()[0]
		ctx, end := context.WithCancel(testkit.Background)
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := s.Call(ctx, 1, nil, asterisque.WithMetadata(fullMetadata()))
				errs <- err
			}()
		}
		first := p.Open()
		synctest.Wait() // the other one waits for room
		end()
		require.ErrorIs(t, <-errs, asterisque.ErrCanceled)
		require.ErrorIs(t, <-errs, asterisque.ErrCanceled)
		require.Equal(t, first.Pipe, p.Close().Pipe)
		require.Zero(t, s.Stats().Outbound.Bytes)
		p.Send(message.Credit{Opens: true, Limit: 12 << 10})
		go s.Call(testkit.Background, 1, nil, asterisque.WithMetadata(fullMetadata()))
		require.Len(t, p.Open().Meta.Metadata, len(encoded(t, fullMetadata())))
	})
}

// Metadata that waits to be sent counts.
func TestMetadata_WaitingToSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, helloMetadata()) // which reads nothing
		s := node.Sessions()[0]
		const calls = 200
		for range calls {
			go s.Call(testkit.Background, 1, nil, asterisque.WithMetadata(fullMetadata()))
		}
		synctest.Wait()
		wait := s.Stats().Outbound
		require.Greater(t, wait.Messages, calls/2, "the other calls are in the Wire")
		require.GreaterOrEqual(t, wait.Bytes, wait.Messages*4096)
		p.W.Close()
	})
}
