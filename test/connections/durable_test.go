package connections

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestDurable_OnceAndInOrder cuts the wire at random times, with a new session after each cut: each
// call runs once, and in order.
func TestDurable_OnceAndInOrder(t *testing.T) {
	calls := 500
	for seed := range uint64(10) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(seed, 0))
				pauses := make([]time.Duration, calls)
				for i := range pauses {
					pauses[i] = time.Duration(rnd.IntN(3000)) * time.Microsecond
				}
				l := testkit.NewLedger(func(_ context.Context, n int) (int, error) {
					fakeclock.Sleep(pauses[n])
					return n * 2, nil
				})
				opts := []asterisque.Option{asterisque.WithWorkers(asterisque.Workers{Session: 1})}
				if seed%2 == 1 {
					opts = append(opts, testkit.LittleRoom())
				}
				conn, wires, _, _ := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{First: time.Millisecond, Most: 4 * time.Millisecond}, opts...)
				var all sync.WaitGroup
				for n := range calls {
					all.Go(func() {
						got, err := testkit.Work.Call(testkit.Background, conn, n, asterisque.WithDurable())
						if err != nil || got != 2*n {
							t.Errorf("call %d: %d, %v", n, got, err)
						}
					})
					synctest.Wait() // keeps the order of the calls
					switch rnd.IntN(20) {
					case 0:
						wires.Cut()
					case 1, 2:
						fakeclock.Sleep(time.Duration(rnd.IntN(10_000)) * time.Microsecond)
					}
				}
				for range 20 {
					fakeclock.Sleep(time.Duration(rnd.IntN(20_000)) * time.Microsecond)
					wires.Cut()
				}
				all.Wait()
				require.Equal(t, testkit.UpTo(calls), l.List())
			})
		})
	}
}

// TestDurable_OutlivesSession loses the wire several times during one call: its handler continues.
func TestDurable_OutlivesSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var ended atomic.Bool
		l := testkit.NewLedger(func(ctx context.Context, n int) (int, error) {
			select {
			case <-gate:
			case <-ctx.Done():
				ended.Store(true)
			}
			return n + 1, nil
		})
		conn, wires, _, there := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{})
		answers := make(chan int)
		go func() {
			got, err := testkit.Work.Call(testkit.Background, conn, 1, asterisque.WithDurable())
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}()
		synctest.Wait()
		for range 5 {
			before := conn.Session()
			wires.Cut()
			fakeclock.Sleep(10 * time.Second)
			require.NotSame(t, before, conn.Session())
		}
		close(gate)
		require.Equal(t, 2, <-answers, "the last session gets the answer of the one handler")
		require.Equal(t, []int{1}, l.List())
		require.False(t, ended.Load(), "which has gone on")
		synctest.Wait()
		require.Len(t, there.Sessions(), 1)
	})
}

// TestDurable_WaitsForNode has calls that wait during an outage, after which another node answers.
func TestDurable_WaitsForNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := testkit.NewLedger(func(context.Context, int) (int, error) { return 1, nil }), testkit.NewLedger(func(context.Context, int) (int, error) { return 2, nil })
		conn, wires, _, there := testkit.Link(t, first.Svc, asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Hour}), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		got, err := testkit.Work.Call(testkit.Background, conn, 100, asterisque.WithDurable())
		require.NoError(t, err)
		require.Equal(t, 1, got)
		wires.FailWith(testkit.ErrBroken)
		there.Close() // the program is restarted
		synctest.Wait()
		results := make([]int, 10)
		var all sync.WaitGroup
		for n := range results {
			all.Go(func() { results[n], _ = testkit.Work.Call(testkit.Background, conn, n, asterisque.WithDurable()) })
			synctest.Wait()
		}
		fakeclock.Sleep(time.Minute)
		next := asterisque.NewNode(asterisque.WithService(second.Svc), asterisque.WithResume(asterisque.Resume{For: time.Hour}), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		defer next.Close()
		wires.LeadTo(next)
		wires.FailWith(nil)
		all.Wait()
		require.Equal(t, []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, results)
		require.Equal(t, testkit.UpTo(10), second.List())
		require.Equal(t, []int{100}, first.List())
		conn.Close()
	})
}

// TestResume_SessionGone replaces the node at the address by another one, which does not have the
// session: the pipes end on both sides.
func TestResume_SessionGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, started, ended := testkit.BlockService()
		conn, wires, _, there := testkit.Link(t, svc, asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		call := make(chan error)
		go func() { _, err := testkit.Block.Call(testkit.Background, conn, ""); call <- err }()
		<-started
		p, err := conn.Open(testkit.Background, 99, nil)
		require.NoError(t, err)
		before := conn.Session()
		next := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		defer next.Close()
		wires.LeadTo(next)
		wires.Cut()
		err = <-call
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.False(t, asterisque.Repeatable(err))
		require.ErrorIs(t, before.Err(), asterisque.ErrUnavailable)
		require.ErrorContains(t, before.Err(), "could not be resumed")
		_, err = p.Result(testkit.Background)
		require.Error(t, err)
		got, err := testkit.Echo.Call(testkit.Background, conn, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		begin := time.Now()
		require.ErrorIs(t, <-ended, context.Canceled, "the other side gives up when its time is over")
		require.LessOrEqual(t, time.Since(begin), time.Minute)
		synctest.Wait()
		require.Empty(t, there.Sessions())
		conn.Close()
	})
}

// TestDurable_Remembered gets the same answer for a repetition until the answer expires.
func TestDurable_Remembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		l := testkit.NewLedger(func(context.Context, int) (int, error) { runs++; return runs, nil })
		node := asterisque.NewNode(asterisque.WithService(l.Svc), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}), asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: time.Minute, Calls: -1, Bytes: -1}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		ask := func(pipe uint64, key string) []byte {
			p.Send(testkit.Keyed(pipe, key))
			c := p.Answer()
			require.Nil(t, c.Abort)
			return c.Result
		}
		require.Equal(t, []byte{1}, ask(0, "a"))
		require.Equal(t, []byte{2}, ask(2, "b"))
		fakeclock.Sleep(59 * time.Second)
		require.Equal(t, []byte{1}, ask(4, "a"))
		p.W.Close()
		p, _ = testkit.RawTo(t, node, testkit.Hello())
		require.Equal(t, []byte{2}, ask(0, "b"), "on another session as well")
		fakeclock.Sleep(time.Second)
		require.Equal(t, []byte{3}, ask(2, "a"), "forgotten")
		require.Equal(t, []byte{3}, ask(4, "a"))
	})
}

// TestDurable_FailureIsAnswer checks that the error of a handler is an answer, and is not repeated.
func TestDurable_FailureIsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range []error{errors.New("no"), asterisque.ErrUnavailable.Withf("the depot is closed"), asterisque.ErrOverloaded} {
			l := testkit.NewLedger(func(context.Context, int) (int, error) { return 0, answer })
			conn, wires, _, _ := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{})
			ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
			begin := time.Now()
			_, err := testkit.Work.Call(ctx, conn, 1, asterisque.WithDurable())
			cancel()
			require.Zero(t, time.Since(begin), "nobody waits for another one")
			require.Equal(t, codec.AbortOf(answer).Code, codec.AbortOf(err).Code, "%v", err)
			require.Equal(t, []int{1}, l.List())
			wires.Cut()
			conn.Close()
		}
	})
}

// rememberedCall is the cost of a remembered call with an answer of one byte.
const rememberedCall = 560

// TestDurable_MemoryFull checks that durable calls are rejected before they run if the memory for
// answers is full.
func TestDurable_MemoryFull(t *testing.T) {
	for name, most := range map[string]asterisque.DurableAnswers{"calls": {Calls: 3}, "bytes": {Bytes: 3 * rememberedCall}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := testkit.NewLedger(func(_ context.Context, n int) (int, error) { return 0, nil })
				conn, _, _, _ := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{}, asterisque.WithDurableAnswers(most), asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: time.Minute, Share: 1}))
				for n := range 3 {
					_, err := testkit.Work.Call(testkit.Background, conn, n, asterisque.WithDurable())
					require.NoError(t, err)
				}
				_, err := testkit.Work.Call(testkit.Background, conn, 3, asterisque.WithDurable())
				require.ErrorIs(t, err, asterisque.ErrOverloaded)
				require.True(t, asterisque.Repeatable(err), "it did not run")
				after, _ := asterisque.RetryAfter(err)
				require.Equal(t, time.Minute, after, "when the first one will be forgotten")
				require.Equal(t, testkit.UpTo(3), l.List())
				_, err = testkit.Work.Call(testkit.Background, conn, 4)
				require.NoError(t, err, "others go on")
				fakeclock.Sleep(time.Minute)
				_, err = testkit.Work.Call(testkit.Background, conn, 5, asterisque.WithDurable())
				require.NoError(t, err, "there is room again")
			})
		})
	}
}

// TestDurable_RepetitionsWait has repetitions that wait for the running call and get its answer.
func TestDurable_RepetitionsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		l := testkit.NewLedger(func(context.Context, int) (int, error) { <-gate; return 7, nil })
		node := asterisque.NewNode(asterisque.WithService(l.Svc), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		for i := range uint64(10) {
			p.Send(testkit.Keyed(2*i, "k"))
		}
		c := p.Answer()
		require.EqualValues(t, 2, c.Pipe, "eight may wait, and the latest displaces the oldest")
		require.Equal(t, codec.Overloaded, c.Abort.Code)
		require.Equal(t, codec.MaybeRan, c.Abort.Ran, "nobody is told to make a call again that runs")
		q, _ := testkit.RawTo(t, node, testkit.Hello())
		q.Send(testkit.Keyed(0, "other"))
		synctest.Wait()
		close(gate)
		for range 9 {
			require.Equal(t, []byte{7}, p.Answer().Result)
		}
		require.Equal(t, []byte{7}, q.Answer().Result)
		require.Equal(t, []int{5, 5}, l.List(), "one for each key")
	})
}

// TestDurable_RepetitionRuns ends a session while a call of it waits for a worker. The repetition
// of the call waits on the next session already, and runs.
func TestDurable_RepetitionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		l := testkit.NewLedger(func(_ context.Context, n int) (int, error) { <-gate; return n, nil })
		node := asterisque.NewNode(asterisque.WithService(l.Svc), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}), asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		defer node.Close()
		old, _ := testkit.RawTo(t, node, testkit.Hello())
		old.Send(testkit.Keyed(0, "busy"), testkit.Keyed(2, "waits"))
		synctest.Wait()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		p.Send(testkit.Keyed(0, "waits"), testkit.Keyed(2, "waits"))
		synctest.Wait()
		require.Equal(t, []int{5}, l.List())
		old.W.Close() // the node notices the end of the old session only now
		synctest.Wait()
		close(gate)
		require.Equal(t, []byte{5}, p.Answer().Result)
		require.Equal(t, []byte{5}, p.Answer().Result)
		require.Equal(t, []int{5, 5}, l.List(), "the busy one, and this one once")
	})
}

// TestDurable_Bounded checks ReconnectConfig.Durable.
func TestDurable_Bounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(_ context.Context, n int) (int, error) { return n, nil })
		conn, wires, _, _ := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{Durable: 3}, asterisque.WithWorkers(asterisque.Workers{Session: 1}))
		wires.FailWith(testkit.ErrBroken)
		wires.Cut()
		synctest.Wait()
		var all sync.WaitGroup
		for n := range 3 {
			all.Go(func() { testkit.Work.Call(testkit.Background, conn, n, asterisque.WithDurable()) })
			synctest.Wait()
		}
		_, err := testkit.Work.Call(testkit.Background, conn, 3, asterisque.WithDurable())
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.True(t, asterisque.Repeatable(err))
		wires.FailWith(nil)
		all.Wait()
		require.Equal(t, testkit.UpTo(3), l.List())
		_, err = testkit.Work.Call(testkit.Background, conn, 4, asterisque.WithDurable())
		require.NoError(t, err)
	})
}

// TestDurable_Ends checks that a durable call ends with its time to live, and with its connection.
func TestDurable_Ends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(ctx context.Context, n int) (int, error) { <-ctx.Done(); return 0, ctx.Err() })
		conn, wires, _, there := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{})
		_, err := testkit.Work.Call(testkit.Background, conn.Session(), 1, asterisque.WithDurable())
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.ErrorContains(t, err, "needs a Connection")

		begin := time.Now()
		time.AfterFunc(5*time.Second, func() { wires.FailWith(testkit.ErrBroken); wires.Cut() })
		_, err = testkit.Work.Call(testkit.Background, conn, 1, asterisque.WithDurable(), asterisque.WithTTL(10*time.Second))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.False(t, asterisque.Repeatable(err), "it may have run, on an earlier session")
		require.Equal(t, 10*time.Second, time.Since(begin))
		_, err = testkit.Work.Call(testkit.Background, conn, 2, asterisque.WithDurable(), asterisque.WithTTL(10*time.Second))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.True(t, asterisque.Repeatable(err), "it was never sent")

		call := make(chan error)
		go func() {
			_, err := testkit.Work.Call(testkit.Background, conn, 3, asterisque.WithDurable())
			call <- err
		}()
		synctest.Wait()
		conn.Close()
		require.ErrorIs(t, <-call, asterisque.ErrSessionClosed)
		there.Close() // ends the handlers
	})
}

// TestDurable_NodeCloses has a durable call that outlives its session: its context ends with the
// node.
func TestDurable_NodeCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		l := testkit.NewLedger(func(ctx context.Context, _ int) (int, error) { <-ctx.Done(); ended <- ctx.Err(); return 0, ctx.Err() })
		node := asterisque.NewNode(asterisque.WithService(l.Svc), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		p.Send(testkit.Keyed(0, "k"))
		synctest.Wait()
		p.W.Close()
		synctest.Wait()
		require.Empty(t, node.Sessions())
		require.Empty(t, ended)
		node.Close()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
