package streams

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/stretchr/testify/require"
)

// A reader that stops ends the writer, and not the call.
func TestStop_WriterNotCall(t *testing.T) {
	svc := asterisque.NewService()
	svc.Handle(24, "first", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		b, err := p.Recv(ctx)
		p.Stop()
		return b.Payload, errors.Join(err, p.Send(ctx, []byte("the other direction continues")), waitUntil(ctx, p))
	})
	dialled, _ := testkit.Connect(t, svc)
	p, err := dialled.Open(testkit.Background, 24, nil)
	require.NoError(t, err)
	for err == nil {
		err = p.Send(testkit.Background, make([]byte, 1000))
	}
	require.ErrorIs(t, err, asterisque.ErrStopped)
	b, err := p.Recv(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, "the other direction continues", string(b.Payload))
	require.NoError(t, p.CloseSend())
	p.Abort(nil)
}

// TestSend_CauseOfAbort aborts calls on the peer while they send, and requires that Send returns
// the cause.
func TestSend_CauseOfAbort(t *testing.T) {
	own := &asterisque.Abort{Code: 1234, Message: "I have had enough"}
	svc := asterisque.NewService()
	svc.Handle(28, "impatient", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, own })
	dialled, _ := testkit.Connect(t, svc)
	var calls sync.WaitGroup
	for i := range 8 {
		calls.Go(func() {
			for range 1000 {
				p, err := dialled.Open(testkit.Background, 28, nil)
				for err == nil {
					switch {
					case i%4 == 0:
						err = p.Send(testkit.Background, []byte("x"))
					case i%4 == 1:
						if _, err = p.AwaitCredit(testkit.Background); err == nil {
							_, err = p.Post([]byte("x"))
						}
					default:
						if err = p.CloseSend(); err == nil {
							_, err = p.Result(testkit.Background)
						}
					}
				}
				if !errors.Is(err, own) && !errors.Is(err, asterisque.ErrOverloaded) {
					// between AwaitCredit and Post
					t.Errorf("it ended with %v", err)
				}
				p.Abort(nil)
			}
		})
	}
	calls.Wait()
}

// TestSend_CauseAtOnce sends from the hook Dropped of the first dropped Block, after which nothing
// may be sent, and requires that sending returns the cause.
func TestSend_CauseAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*testkit.RawPeer) // of the call with pipe 3
		want error
	}{
		"an abort of the peer": {func(p *testkit.RawPeer) { p.Send(&message.Close{Pipe: 3, Abort: codec.ErrUnauthorized}) }, asterisque.ErrUnauthorized},
		"the end":              {func(p *testkit.RawPeer) { p.Send(&message.Close{Pipe: 3}) }, asterisque.ErrPipeClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p *pipe.Pipe
				var errs []error
				peer, s := testkit.StuckPeer(t, asterisque.WithHooks(asterisque.Hooks{Dropped: func(*asterisque.Session, asterisque.Drop) {
					if len(errs) == 0 {
						_, err := p.Post(nil)
						errs = []error{err, p.CloseSend()}
					}
				}}))
				fill, err := s.Open(testkit.Background, 1, nil) // pipe 1
				require.NoError(t, err)
				p, err = s.Open(testkit.Background, 1, nil)
				require.NoError(t, err)
				for range 4 {
					_, err := fill.Post(make([]byte, 60_000))
					require.NoError(t, err)
				}
				_, err = p.Post([]byte("waits"))
				require.NoError(t, err)
				c.end(peer)
				synctest.Wait()
				require.Len(t, errs, 2)
				require.ErrorIs(t, errs[0], c.want)
				require.ErrorIs(t, errs[1], c.want)
			})
		})
	}
}

// waitUntil waits for the end of the call.
func waitUntil(ctx context.Context, p *pipe.Pipe) error {
	<-p.Done()
	return ctx.Err()
}

// A Stop before the Open has left follows it.
func TestStop_BeforeOpenLeft(t *testing.T) {
	svc := asterisque.NewService()
	svc.Handle(25, "sender", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		var err error
		for err == nil {
			err = p.Send(ctx, make([]byte, 100))
		}
		return []byte(err.Error()), nil
	})
	dialled, _ := testkit.Connect(t, svc)
	p, err := dialled.Open(testkit.Background, 25, nil)
	require.NoError(t, err)
	p.Stop()
	result, err := p.Result(testkit.Background)
	require.NoError(t, err)
	require.Contains(t, string(result), "stopped")
}

// TestStream_BlocksStay covers calls with a cancellable context: the end of the call ends the watch
// over that.
func TestStream_BlocksStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(50, "says two things", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			for _, word := range []string{"one", "two"} {
				if err := p.Send(ctx, []byte(word)); err != nil {
					return nil, err
				}
			}
			return []byte("result"), nil
		})
		dialled, _ := testkit.InMemory(t, svc)
		for _, opts := range [][]asterisque.CallOption{nil, {asterisque.WithTTL(time.Minute)}} {
			ctx, cancel := context.WithCancel(testkit.Background)
			p, err := dialled.Open(ctx, 50, nil, opts...)
			require.NoError(t, err)
			<-p.Done()
			synctest.Wait()
			cancel()
			synctest.Wait()
			for _, word := range []string{"one", "two"} {
				b, err := p.Recv(testkit.Background)
				require.NoError(t, err)
				require.Equal(t, word, string(b.Payload))
			}
			_, err = p.Recv(testkit.Background)
			require.Equal(t, io.EOF, err)
			result, err := p.Result(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, "result", string(result))
		}
	})
}
