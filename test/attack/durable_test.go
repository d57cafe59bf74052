package attack

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
)

// heldBySession is by how much NodeStats.Held may exceed what one session holds.
const heldBySession = 48 << 10

// TestAttackDurable_HalfTheWorkers hangs up with durable calls that run: they keep at most half of
// the workers from other peers.
func TestAttackDurable_HalfTheWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, running := testkit.Dreamers()
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Node: 4}), asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: time.Minute, Calls: -1, Bytes: -1}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		for i := range uint64(4) {
			p.Send(testkit.Keyed(2*i, fmt.Sprint(i)))
		}
		synctest.Wait()
		attack.Bounded(t, "durable calls that run, of Workers.Node(4)", int(running.Load()), 4)
		p.W.Close()
		synctest.Wait()
		require.Empty(t, node.Sessions())
		attack.Bounded(t, "durable calls that run on without a session, of Workers.Node(4)", int(running.Load()), 2)
		q, _ := testkit.RawTo(t, node, testkit.Hello())
		q.Send(testkit.EchoOpen(0))
		require.Nil(t, q.Answer().Abort, "others are served")
		fakeclock.Sleep(time.Minute)
		synctest.Wait()
		attack.Bounded(t, "durable calls that run after the time of DurableAnswers", int(running.Load()), 0)
	})
}

// TestAttackDurable_ManySessions makes durable calls in many sessions: together they run as the
// calls of one peer.
func TestAttackDurable_ManySessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workers := testkit.Long(20, 1024)
		svc, running := testkit.Dreamers()
		node := asterisque.NewNode(asterisque.WithService(svc), testkit.Named(), asterisque.WithWorkers(asterisque.Workers{Session: workers}))
		defer node.Close()
		for s := range 20 {
			p, _ := testkit.RawTo(t, node, testkit.HelloOf("mallory"))
			for i := range uint64(testkit.Long(30, 1000)) {
				p.Send(testkit.Keyed(2*i, fmt.Sprint(s, " ", i)))
			}
			synctest.Wait()
			if s%2 == 0 {
				p.W.Close()
			}
		}
		synctest.Wait()
		attack.Bounded(t, fmt.Sprintf("durable calls of one peer that run, over 20 sessions of WithWorkers(%d)", workers), int(running.Load()), workers)
		p, _ := testkit.RawTo(t, node, testkit.HelloOf("mallory"))
		p.Send(testkit.EchoOpen(0))
		require.Nil(t, p.Answer().Abort, "calls that are not durable run")
		q, _ := testkit.RawTo(t, node, testkit.HelloOf("alice"))
		q.Send(testkit.Keyed(0, "hers"))
		synctest.Wait()
		require.EqualValues(t, workers+1, running.Load(), "and those of others")
		for _, s := range node.Sessions() {
			s.Close()
		}
		fakeclock.Sleep(5 * time.Minute)
		synctest.Wait()
		require.Zero(t, running.Load())
	})
}

// TestAttackDurable_Repetitions sends each call nine times, with 1 MiB of parameters: repetitions
// hold no parameters.
func TestAttackDurable_Repetitions(t *testing.T) {
	svc, _ := testkit.Dreamers()
	svc.Handle(60, "sleep", testkit.WaitForContext)
	p, s := testkit.DialRaw(t, asterisque.WithService(svc))
	const keys = 4
	params := make([]byte, 1<<20)
	before := weightest.Heap()
	for i := range uint64(9 * keys) {
		p.Send(&message.Open{Pipe: 2 * i, Function: 60, Params: params, Meta: message.Meta{Key: fmt.Appendf(nil, "%016d", i%keys)}})
	}
	p.Send(message.Ping{N: 1})
	for !testkit.IsPong(p.Frame()) {
	}
	attack.Bounded(t, "bytes held for 4 durable calls of 1 MiB and 8 repetitions of each", weightest.HeldSince(before, keys<<20+1<<20), keys<<20+1<<20)
	attack.Bounded(t, "bytes counted for the repetitions", s.Stats().Inbound.Bytes, 8*keys*1024)
	require.Positive(t, s.Stats().Inbound.Messages, "they are counted")
	for i := range uint64(9 * keys) {
		p.Send(&message.Close{Pipe: 2 * i, Abort: codec.ErrCanceled})
	}
	require.Eventually(t, func() bool { return s.Stats().Inbound == limits.Amount{} && s.Stats().Classes.Calls.Held == 0 }, testkit.Patience, time.Millisecond,
		"they leave with their callers")
	runtime.KeepAlive(params)
}

// TestAttackDurable_WireCuts cuts the wire during one call, more often than repetitions may wait:
// the call runs once.
func TestAttackDurable_WireCuts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(_ context.Context, n int) (int, error) {
			fakeclock.Sleep(8 * time.Second)
			return n + 1, nil
		})
		conn, wires, _, there := testkit.Link(t, l.Svc, asterisque.ReconnectConfig{First: time.Millisecond, Most: time.Millisecond})
		var got int
		done := make(chan error)
		go func() {
			retry := asterisque.Retry{Attempts: 5}
			done <- retry.Do(testkit.Background, func(ctx context.Context) (err error) {
				got, err = testkit.Work.Call(ctx, conn, 1, asterisque.WithDurable())
				return err
			})
		}()
		for range 19 {
			fakeclock.Sleep(400 * time.Millisecond)
			wires.Cut()
		}
		require.NoError(t, <-done)
		require.Equal(t, 2, got)
		require.Equal(t, []int{1}, l.List())
		require.Len(t, there.Sessions(), 1)
	})
}

// TestAttackDurable_LargeAnswers has large answers and errors, of which the node remembers one
// share.
func TestAttackDurable_LargeAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share, size, calls = 1 << 20, 64 << 10, 40
		ran := 0
		svc := asterisque.NewService()
		svc.Handle(61, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
			ran++
			if ran%2 == 0 {
				return nil, &asterisque.Abort{Code: 1000, Message: "no", Detail: make([]byte, size)}
			}
			return make([]byte, size), nil
		}, asterisque.WithConcurrency(1))
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: time.Minute, Bytes: 8 * share}))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		open := func(pipe uint64, i int) *message.Open {
			return &message.Open{Pipe: pipe, Function: 61, Meta: message.Meta{Key: fmt.Appendf(nil, "%016d", i)}}
		}
		for i := range calls {
			p.Send(open(uint64(2*i), i))
			p.Answer()
		}
		attack.Bounded(t, "bytes remembered for one peer, of DurableAnswers(8 MiB)", node.Stats().Held, share+heldBySession)
		p.Send(open(2*calls, 0), open(2*calls+2, calls-1))
		require.Len(t, p.Answer().Result, size)
		c := p.Answer()
		require.Equal(t, codec.Overloaded, c.Abort.Code, "what does not fit is remembered as having run")
		require.Equal(t, codec.MaybeRan, c.Abort.Ran)
		require.Contains(t, c.Abort.Message, "DurableAnswers")
		require.Equal(t, calls, ran)
		fakeclock.Sleep(time.Minute)
		synctest.Wait()
		attack.Bounded(t, "bytes remembered after the time of DurableAnswers, without another call", node.Stats().Held, heldBySession)
	})
}

// TestAttackDurable_ManyCalls makes many durable calls in several sessions: they fill the share of
// one peer only.
func TestAttackDurable_ManyCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewLedger(func(_ context.Context, n int) (int, error) { return n, nil })
		node := asterisque.NewNode(asterisque.WithService(l.Svc), testkit.Named(), asterisque.WithDurableAnswers(asterisque.DurableAnswers{For: time.Minute, Calls: 800}))
		defer node.Close()
		refused := 0
		for session := range 3 {
			p, _ := testkit.RawTo(t, node, testkit.HelloOf("mallory"))
			for i := range uint64(60) {
				p.Send(testkit.Keyed(2*i, fmt.Sprint(session, " ", i)))
				if c := p.Answer(); c.Abort != nil {
					refused++
					after, ok := asterisque.RetryAfter(c.Abort)
					require.True(t, ok)
					require.Equal(t, time.Minute-time.Duration(session)*time.Second, after, "when the first one will be forgotten")
					require.Equal(t, codec.Refused, c.Abort.Ran)
				}
			}
			fakeclock.Sleep(time.Second)
		}
		attack.Bounded(t, "durable calls remembered for one peer, of DurableAnswers(800 calls)", 3*60-refused, 100)
		require.Equal(t, 80, refused)
		q, _ := testkit.RawTo(t, node, testkit.HelloOf("alice"))
		q.Send(testkit.Keyed(0, "hers"))
		require.Nil(t, q.Answer().Abort)
	})
}

// TestAttackDurable_ForeignKey repeats a key, by the same and by other peers, and with other
// contents: only the same call gets the answer.
func TestAttackDurable_ForeignKey(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  string // peer of the first call
		second string // peer of the repetition
		open   func(*message.Open)
		want   codec.Code // 0: the answer of a call
		runs   int
	}{
		{"by itself", "alice", "alice", func(*message.Open) {}, 0, 1},
		{"with other parameters", "alice", "alice", func(o *message.Open) { o.Params = []byte{6} }, codec.BadParams, 1},
		{"of another function", "alice", "alice", func(o *message.Open) { o.Function = testkit.Echo.Number() }, codec.BadParams, 1},
		{"by another peer, with keys of its own", "alice", "mallory", func(*message.Open) {}, 0, 2},
		{"without a proof", "alice", "", func(*message.Open) {}, 0, 2},
		{"twice without a proof, since the key is one", "", "", func(*message.Open) {}, 0, 1},
		{"twice without a proof, with other parameters", "", "", func(o *message.Open) { o.Params = []byte{6} }, codec.BadParams, 1},
		{"a short key without a proof", "", "", func(o *message.Open) { o.Meta.Key = []byte("k") }, codec.BadParams, 1},
		{"a short key with a proof", "", "alice", func(o *message.Open) { o.Meta.Key = []byte("k") }, 0, 2},
		{"a stream", "alice", "alice", func(o *message.Open) { o.Meta.Stream = true }, codec.BadParams, 1},
		{"a new key for a stream", "alice", "alice", func(o *message.Open) { o.Meta.Stream, o.Meta.Key = true, []byte("k") }, codec.BadParams, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := testkit.NewLedger(func(context.Context, int) (int, error) { return 7, nil })
				testkit.Echo.Handle(l.Svc, func(_ context.Context, s string) (string, error) { return s, nil })
				node := asterisque.NewNode(asterisque.WithService(l.Svc), testkit.Named())
				defer node.Close()
				p, _ := testkit.RawTo(t, node, testkit.HelloOf(c.first))
				p.Send(testkit.Keyed(0, "k"))
				require.Nil(t, p.Answer().Abort)
				q, _ := testkit.RawTo(t, node, testkit.HelloOf(c.second))
				o := testkit.Keyed(0, "k")
				c.open(o)
				q.Send(o)
				answer := q.Answer()
				if c.want == 0 {
					require.Nil(t, answer.Abort)
				} else {
					require.Equal(t, c.want, answer.Abort.Code)
					require.Equal(t, codec.Refused, answer.Abort.Ran)
				}
				require.Len(t, l.List(), c.runs)
				synctest.Wait()
				require.Zero(t, node.Stats().Total.Classes.Calls.Held)
			})
		})
	}
}

// TestAttackDurable_Nested answers a call with durable calls that would continue without their
// session: nested ones end with it.
func TestAttackDurable_Nested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, running := testkit.Dreamers()
		node := asterisque.NewNode(asterisque.WithService(svc))
		defer node.Close()
		p, _ := testkit.RawTo(t, node, testkit.Hello())
		synctest.Wait()
		go node.Sessions()[0].Call(testkit.Background, 99, nil)
		synctest.Wait()
		p.Frame()
		for i := range uint64(100) {
			o := testkit.Keyed(2*i, fmt.Sprint(i))
			o.Meta.Nested, o.Meta.Within = true, 1
			p.Send(o)
		}
		synctest.Wait()
		require.EqualValues(t, 100, running.Load())
		p.W.Close()
		synctest.Wait()
		attack.Bounded(t, "durable calls within a call that run on without a session", int(running.Load()), 0)
	})
}

// TestAttackDurable_SharedAnswer repeats the call many times, and reads no answer: the waiting
// answers share their memory.
func TestAttackDurable_SharedAnswer(t *testing.T) {
	testkit.SkipRace(t)
	const size, times = 512 << 10, 300
	svc := asterisque.NewService()
	svc.Handle(61, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, size), nil })
	p, s := testkit.DialRaw(t, asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Outbound: limits.Limits{Soft: limits.Amount{Bytes: 2 * size}}}))
	open := &message.Open{Function: 61, Meta: message.Meta{Key: make([]byte, 16)}}
	p.Send(open)
	before := weightest.Heap()
	for range times {
		open.Pipe += 2
		p.Send(open)
	}
	require.Eventually(t, func() bool { return s.Stats().Served == times+1 && s.Stats().Running <= s.Stats().Parked }, testkit.Patience, time.Millisecond)
	attack.Bounded(t, "bytes held for 300 unread answers to repetitions, of 512 KiB, with an outbound limit of 1 MiB", weightest.HeldSince(before, 5*size), 5*size)
	attack.Bounded(t, "bytes counted for them", s.Stats().Holding+s.Stats().Outbound.Bytes, 4*size)
	for range times + 1 {
		require.Len(t, p.Answer().Result, size)
	}
	testkit.WantIdle(t, s)
}

// TestAttackDurable_SameBytes has callers of several codecs and identities use one key for the same
// bytes, which are another call in each codec: JSON has 1 where CBOR has -18.
func TestAttackDurable_SameBytes(t *testing.T) {
	type caller struct {
		values   codec.Values
		subject  string
		function uint16
	}
	double, triple := asterisque.Func[int, int](30, "double"), asterisque.Func[int, int](31, "triple")
	svc, runs := asterisque.NewService(), new(atomic.Int64)
	double.Handle(svc, func(_ context.Context, n int) (int, error) { runs.Add(1); return 2 * n, nil })
	triple.Handle(svc, func(_ context.Context, n int) (int, error) { runs.Add(1); return 3 * n, nil })
	var callers []caller
	for _, values := range []codec.Values{codec.CBOR, codec.JSON, codec.Raw} {
		for _, subject := range []string{"alice", "bob"} {
			for _, function := range []uint16{30, 31} {
				callers = append(callers, caller{values, subject, function})
			}
		}
	}
	node := asterisque.NewNode(asterisque.WithService(svc), testkit.Named())
	defer node.Close()
	call := func(c caller, key string) (string, error) {
		mine := asterisque.NewNode(asterisque.WithID(c.subject), asterisque.WithCodecs(c.values))
		defer mine.Close()
		s, _ := testkit.ConnectNodes(t, mine, node)
		got, err := s.Call(testkit.Background, c.function, []byte("1"), asterisque.WithIdempotencyKey([]byte(key)))
		return string(got), err
	}
	for i, first := range callers {
		for j, second := range callers {
			key := fmt.Sprint("key ", i, " ", j)
			alone, failed := call(second, key+" alone")
			_, unrun := call(first, key) // raw bytes are not a number
			before := runs.Load()
			got, err := call(second, key)
			if unrun == nil && first.subject == second.subject && first != second {
				require.ErrorIs(t, err, asterisque.ErrBadParams, "%v after %v", second, first)
				require.Equal(t, before, runs.Load())
				continue
			}
			require.Equal(t, alone, got, "%v after %v", second, first)
			require.Equal(t, failed == nil, err == nil)
			if unrun == nil && first == second {
				require.Equal(t, before, runs.Load(), "%v: the answer is remembered", first)
			}
		}
	}
}
