package streams

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// tapped is a stream whose handler waits for the test, which uses both ends.
func tapped(t *testing.T, opts ...asterisque.Option) (here, there *pipe.Pipe, sess *asterisque.Session) {
	handlers := make(chan *pipe.Pipe, 1)
	svc := asterisque.NewService()
	svc.Handle(60, "is tapped", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		handlers <- p
		<-ctx.Done()
		return nil, ctx.Err()
	})
	sess, _ = testkit.InMemory(t, svc, opts...)
	here, err := sess.Open(testkit.Background, 60, nil)
	require.NoError(t, err)
	return here, <-handlers, sess
}

// A Block that exceeds the largest message of the peer, and does not fit into the window.
func TestDivided_TooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, sess := tapped(t)
		go there.Recv(testkit.Background)
		err := here.Send(testkit.Background, make([]byte, here.MaxBlock()+1<<20))
		synctest.Wait()
		require.ErrorIs(t, err, asterisque.ErrTooLarge)
		require.NoError(t, sess.Err(), "the session is not affected")
		require.NoError(t, here.Send(testkit.Background, []byte("next")), "the pipe remains usable")
	})
}

// A Block whose time is over before any part of it was sent.
func TestDivided_ExpiredBeforeItBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, _ := tapped(t)
		fits, err := here.AwaitCredit(testkit.Background)
		require.NoError(t, err)
		require.NoError(t, here.Send(testkit.Background, make([]byte, fits)), "which uses up the window")
		go here.Send(testkit.Background, make([]byte, 100_000), pipe.WithTTL(time.Second))
		fakeclock.Sleep(time.Minute)
		for _, want := range []int{fits, 4} {
			b, err := there.Recv(testkit.Background)
			require.NoError(t, err)
			require.Equal(t, want, len(b.Payload))
			synctest.Wait()
			go here.Send(testkit.Background, []byte("next"))
		}
	})
}

// A Block whose time is over between two of its pieces.
func TestDivided_ExpiredUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, _ := tapped(t)
		go func() {
			here.Send(testkit.Background, make([]byte, 100_000), pipe.WithTTL(time.Second))
			here.Send(testkit.Background, []byte("next"))
		}()
		fakeclock.Sleep(time.Minute)
		b, err := there.Recv(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, 4, len(b.Payload))
		require.EqualValues(t, 1, b.Skipped)
	})
}

// The gap before a Block that is given up is not lost.
func TestDivided_GapOfOneGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there, _ := tapped(t)
		fits, err := here.AwaitCredit(testkit.Background)
		require.NoError(t, err)
		require.NoError(t, here.Send(testkit.Background, make([]byte, fits)))
		require.NoError(t, here.Send(testkit.Background, make([]byte, 100), pipe.WithLoss(127)), "dropped")
		ctx, giveUp := context.WithCancel(testkit.Background)
		sent := make(chan error)
		go func() { sent <- here.Send(ctx, make([]byte, 1_000_000)) }()
		_, err = there.Recv(testkit.Background)
		require.NoError(t, err)
		synctest.Wait()
		giveUp()
		require.ErrorIs(t, <-sent, asterisque.ErrCanceled)
		go here.Send(testkit.Background, []byte("next"))
		b, err := there.Recv(testkit.Background)
		require.NoError(t, err)
		require.Equal(t, "next", string(b.Payload))
		require.EqualValues(t, 1, b.Skipped)
	})
}

// A peer hands back all of its credit, which it may, and the application waits.
func TestSkip_OfAllCredit(t *testing.T) {
	for name, before := range map[string]bool{"the application waits": true, "the application waits later": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin, taken := make(chan struct{}), make(chan struct{})
				svc := asterisque.NewService()
				svc.Handle(60, "takes one", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
					<-begin
					_, err := p.Recv(ctx)
					close(taken)
					return nil, err
				})
				node := asterisque.NewNode(asterisque.WithService(svc))
				defer node.Close()
				p, promises := testkit.RawTo(t, node, testkit.Hello())
				p.Send(&message.Open{Pipe: 0, Function: 60, Meta: message.Meta{Stream: true, Window: 1 << 20}})
				limit := promises.Window
				if before {
					close(begin)
				}
				credit := func(n uint64) {
					p.Send(message.Ping{N: n})
					for {
						switch c := p.Control().(type) {
						case message.Credit:
							if !c.Opens {
								limit = max(limit, c.Limit)
							}
						case message.Pong:
							return
						}
					}
				}
				synctest.Wait()
				credit(1)
				p.Send(message.Skip{Pipe: 0, Sent: limit})
				synctest.Wait()
				if !before {
					close(begin)
				}
				synctest.Wait()
				skipped := limit
				credit(2)
				require.Greater(t, limit, skipped, "the application waits, and nothing is left")
				p.Send(&message.Block{Pipe: 0})
				<-taken
			})
		})
	}
}
