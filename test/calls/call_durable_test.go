package calls

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// keyedAt returns an Open of function 61, a durable call with the key k.
func keyedAt(pipe uint64) *message.Open {
	return &message.Open{Pipe: pipe, Function: 61, Meta: message.Meta{Key: []byte(strings.Repeat("k", 16))}}
}

// TestDurable_RepetitionRuns: the repetition of a call that was cancelled before a worker took it
// becomes an ordinary call: it is answered, or cancelled, and holds nothing afterwards.
func TestDurable_RepetitionRuns(t *testing.T) {
	for name, giveUp := range map[string]bool{"is answered": false, "is canceled": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, h := testkit.HoldService()
				began, goOn := make(chan struct{}, 2), make(chan struct{})
				svc.Handle(61, "once", func(ctx context.Context, _ *pipe.Pipe, _ []byte) ([]byte, error) {
					began <- struct{}{}
					select {
					case <-goOn:
						return []byte("done"), nil
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				})
				node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
				defer node.Close()
				p, _ := testkit.RawTo(t, node, testkit.Hello())
				p.Send(&message.Open{Pipe: 0, Function: testkit.Held.Number(), Params: []byte{0x60}})
				p.Send(keyedAt(2), keyedAt(4), &message.Close{Pipe: 2, Abort: codec.ErrCanceled})
				synctest.Wait()
				close(h.End)
				require.Zero(t, p.Answer().Pipe)
				synctest.Wait()
				require.Len(t, began, 1)
				if giveUp {
					p.Send(&message.Close{Pipe: 4, Abort: codec.ErrCanceled})
				} else {
					close(goOn)
					c := p.Answer()
					require.EqualValues(t, 4, c.Pipe)
					require.Equal(t, "done", string(c.Result))
				}
				synctest.Wait()
				st := node.Stats()
				require.Len(t, began, 1, "it ran once")
				require.Zero(t, st.Total.Running)
				require.Zero(t, st.Total.Classes.Calls.Held, "its room is given back, and once")
				require.GreaterOrEqual(t, st.Total.Classes.Calls.Promised, 0)
			})
		})
	}
}

// TestDurable_UnkeptAnswer: the last repetition gets the answer. Earlier ones would need it to be
// kept, and fail because there was no room.
func TestDurable_UnkeptAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want []uint64 // the pipes of those that get the answer
	}{
		"no room": {8 << 10, []uint64{0, 6}},
		"room":    {100, []uint64{0, 2, 4, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				svc, goOn := asterisque.NewService(), make(chan struct{})
				svc.Handle(61, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
					<-goOn
					return make([]byte, c.size), nil
				})
				node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithDurableAnswers(asterisque.DurableAnswers{Bytes: 4 << 10, Share: 1}))
				defer node.Close()
				p, _ := testkit.RawTo(t, node, testkit.Hello())
				for pipe := range uint64(4) {
					p.Send(keyedAt(2 * pipe))
				}
				synctest.Wait()
				close(goOn)
				var got []uint64
				for range 4 {
					a := p.Answer()
					if a.Abort == nil {
						require.Len(t, a.Result, c.size)
						got = append(got, a.Pipe)
						continue
					}
					require.Equal(t, codec.Overloaded, a.Abort.Code)
					require.NotEqual(t, codec.Refused, a.Abort.Ran, "the call ran")
				}
				require.ElementsMatch(t, c.want, got)
			})
		})
	}
}

// countedOnce returns a service with function 61, which counts its runs.
func countedOnce(ran *int) *asterisque.Service {
	svc := asterisque.NewService()
	svc.Handle(61, "once", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
		*ran++
		return []byte("done"), nil
	})
	return svc
}

// TestDurable_RefusedRunsLater uses an interceptor that refuses the first call and those that wait
// for it: they have not used the key.
func TestDurable_RefusedRunsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn, ran := make(chan struct{}), 0
		svc := countedOnce(&ran)
		refuses := true
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithInboundInterceptors(
			func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				if refuses {
					<-goOn
					return c.Refuse(asterisque.ErrUnavailable.Withf("not now"))
				}
				return next(ctx, c)
			}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		p.Send(keyedAt(0), keyedAt(2), keyedAt(4))
		synctest.Wait()
		close(goOn)
		for range 3 {
			c := p.Answer()
			require.ErrorIs(t, c.Abort, asterisque.ErrUnavailable)
			require.Equal(t, "not now", c.Abort.Message)
			require.True(t, asterisque.Repeatable(c.Abort))
		}
		synctest.Wait()
		refuses = false
		p.Send(keyedAt(6))
		require.Equal(t, "done", string(p.Answer().Result))
		p.Send(keyedAt(8))
		require.Equal(t, "done", string(p.Answer().Result))
		require.Equal(t, 1, ran)
		synctest.Wait()
		require.Zero(t, node.Stats().Total.Classes.Calls.Held, "their room is given back")
	})
}

// An error is not remembered if an interceptor says so.
func TestDurable_InterceptorForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		goOn, ran := make(chan struct{}), 0
		svc := countedOnce(&ran)
		elsewhere := true
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithInboundInterceptors(
			func(ctx context.Context, c *asterisque.Call, next asterisque.Next) error {
				c.ForgetAnswer()
				if elsewhere {
					<-goOn
					return asterisque.ErrUnavailable.Withf("it runs elsewhere")
				}
				return next(ctx, c)
			}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		p.Send(keyedAt(0), keyedAt(2), keyedAt(4))
		synctest.Wait()
		close(goOn)
		for range 3 {
			c := p.Answer()
			require.ErrorIs(t, c.Abort, asterisque.ErrUnavailable)
			require.False(t, asterisque.Repeatable(c.Abort))
		}
		synctest.Wait()
		elsewhere = false
		for i := range uint64(3) {
			p.Send(keyedAt(6 + 2*i))
			require.Equal(t, "done", string(p.Answer().Result), "a result is remembered all the same")
		}
		require.Equal(t, 1, ran)
	})
}
