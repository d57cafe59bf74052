package calls

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
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
	"github.com/asterisque-go/asterisque/priority"
)

// Calls of one key run in the order of their arrival, and beside calls of other keys.
func TestKeys_ArrivalOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService(asterisque.WithKey(firstLetter))
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		a, _ := asterisquetest.ConnectNodes(t, here, there)
		b, _ := asterisquetest.ConnectNodes(t, here, there)
		var wg sync.WaitGroup
		call := func(s *asterisque.Session, name string, opts ...asterisque.CallOption) {
			wg.Go(func() { testkit.Held.Call(testkit.Background, s, name, opts...) })
			synctest.Wait()
		}
		call(a, "k1")
		call(b, "k2")
		call(a, "k3", asterisque.WithPriority(100)) // arrival counts, not priority
		call(b, "l1")
		call(b, "k4")
		call(a, "l2")
		require.Equal(t, []string{"k1", "l1"}, h.Order(), "one of each key")
		st := there.Stats().Total
		require.Equal(t, []int{2, 4, 4}, []int{st.Running, st.Waiting, st.Inbound.Messages}, "what waits for its turn is counted")
		close(h.End)
		wg.Wait()
		order := h.Order()
		require.Equal(t, []string{"k2", "k3", "k4"}, slices.DeleteFunc(order, func(s string) bool { return s[0] != 'k' }))
	})
}

// TestKeys_SleeperKeepsNoRoom requires that a call that waits for its key releases its room at
// once: later calls would not fit otherwise.
func TestKeys_SleeperKeepsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService(asterisque.WithKey(firstLetter))
		svc.Handle(50, "take", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil })
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc), asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 64 << 10}}}))
		defer here.Close()
		defer there.Close()
		s, _ := asterisquetest.ConnectNodes(t, here, there)
		var wg sync.WaitGroup
		for _, name := range []string{"k1", "k2"} {
			wg.Go(func() { testkit.Held.Call(testkit.Background, s, name) })
			synctest.Wait()
		}
		for _, size := range []int{5 << 10, 8 << 10, 5 << 10, 8 << 10, 1, 8 << 10} {
			ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
			_, err := s.Call(ctx, 50, make([]byte, size))
			cancel()
			require.NoError(t, err)
		}
		close(h.End)
		wg.Wait()
	})
}

// A call that is cancelled while it waits for its key is skipped.
func TestKeys_GivenUpPassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService(asterisque.WithKey(firstLetter))
		dialled, accepted := testkit.InMemory(t, svc)
		var wg sync.WaitGroup
		var contexts []context.CancelFunc
		testkit.Calls(&wg, 7, func(i int) {
			ctx, cancel := context.WithCancel(testkit.Background)
			contexts = append(contexts, cancel)
			testkit.Held.Call(ctx, dialled, fmt.Sprint("k", i))
		})
		for _, i := range []int{6, 1, 3, 4} {
			// The last call, the call behind the running one, and two in the middle.
			contexts[i]()
			synctest.Wait()
		}
		testkit.Calls(&wg, 1, func(int) { testkit.Held.Call(testkit.Background, dialled, "k7") })
		require.Equal(t, 3, accepted.Stats().Waiting)
		for _, next := range []string{"k0", "k2", "k5", "k7"} {
			require.Equal(t, []string{next}, h.Order())
			h.End <- struct{}{}
			synctest.Wait()
		}
		wg.Wait()
		for _, cancel := range contexts {
			cancel()
		}
		testkit.WantIdle(t, dialled, accepted)
	})
}

// A key passes on from a session that dies.
func TestKeys_SessionDies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, h := testkit.HoldService(asterisque.WithKey(firstLetter))
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		dying, _ := asterisquetest.ConnectNodes(t, here, there)
		living, accepted := asterisquetest.ConnectNodes(t, here, there)
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				testkit.Held.Call(testkit.Background, []*asterisque.Session{dying, living}[i%2], fmt.Sprint("k", i%2))
			})
			synctest.Wait()
		}
		require.Equal(t, []string{"k0"}, h.Order())
		dying.Close()
		for range 5 {
			synctest.Wait()
			require.Equal(t, []string{"k1"}, h.Order())
			h.End <- struct{}{}
		}
		wg.Wait()
		testkit.WantIdle(t, accepted)
	})
}

// Any comparable type can be a key.
func TestKeys_ComparableTypes(t *testing.T) {
	type order struct {
		Shop   string `cbor:"shop" json:"shop"`
		Number int    `cbor:"number" json:"number"`
		Goods  []byte `cbor:"goods" json:"goods"`
	}
	type part struct { // with fewer fields, which spares the rest
		Shop string `cbor:"shop" json:"shop"`
	}
	type pair struct {
		shop string
		odd  bool
	}
	buy := asterisque.Func[order, int](70, "buy")
	for name, opt := range map[string]asterisque.HandlerOption{
		"string":              asterisque.WithKey(func(o order) string { return o.Shop }),
		"a part of what came": asterisque.WithKey(func(p part) string { return p.Shop }),
		"struct":              asterisque.WithKey(func(o order) pair { return pair{o.Shop, false} }),
		"interface":           asterisque.WithKey(func(o order) any { return o.Shop }),
		"array of the bytes":  asterisque.WithKey(func(params []byte) [2]byte { return [2]byte(params) }),
		"of all the same key": asterisque.WithKey(func([]byte) struct{} { return struct{}{} }),
	} {
		for _, values := range []codec.Values{codec.CBOR, codec.JSON} {
			t.Run(name+" "+values.Name(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					svc := asterisque.NewService()
					began, end := make(chan int, 10), make(chan struct{})
					buy.Handle(svc, func(_ context.Context, o order) (int, error) { began <- o.Number; <-end; return o.Number, nil }, opt)
					dialled, accepted := testkit.InMemory(t, svc, asterisque.WithCodecs(values))
					var wg sync.WaitGroup
					testkit.Calls(&wg, 3, func(i int) {
						buy.Call(testkit.Background, dialled, order{Shop: "corner", Number: i, Goods: []byte("bread")})
					})
					require.Len(t, began, 1)
					close(end)
					wg.Wait()
					require.Equal(t, []int{0, 1, 2}, []int{<-began, <-began, <-began})
					testkit.WantIdle(t, dialled, accepted)
				})
			})
		}
	}
}

// A key function for bytes gets the parameters: the encoded ones, or the bytes themselves.
func TestKeys_OfBytes(t *testing.T) {
	bytes, number := asterisque.Func[[]byte, int](71, "bytes"), asterisque.Func[uint32, int](72, "number")
	keys := make(chan string, 1)
	key := asterisque.WithKey(func(params []byte) string {
		keys <- string(params)
		return ""
	})
	svc := asterisque.NewService()
	bytes.Handle(svc, func(_ context.Context, b []byte) (int, error) { return len(b), nil }, key)
	number.Handle(svc, func(context.Context, uint32) (int, error) { return 0, nil }, key)
	svc.Handle(73, "untyped", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return nil, nil }, key)
	dialled, _ := testkit.Connect(t, svc)
	_, err := bytes.Call(testkit.Background, dialled, []byte("abc"))
	require.NoError(t, err)
	require.Equal(t, "abc", <-keys)
	_, err = number.Call(testkit.Background, dialled, 7)
	require.NoError(t, err)
	require.Equal(t, "\x07", <-keys, "CBOR")
	_, err = dialled.Call(testkit.Background, 73, []byte("xyz"))
	require.NoError(t, err)
	require.Equal(t, "xyz", <-keys)
}

// A key that cannot be compared refuses the call.
func TestKeys_NotComparable(t *testing.T) {
	svc := asterisque.NewService()
	// An interface holds a slice, which is not comparable.
	svc.Handle(7, "slices", testkit.WaitForContext, asterisque.WithKey(func(params []byte) any { return params }))
	dialled, accepted := testkit.Connect(t, svc)
	_, err := dialled.Call(testkit.Background, 7, []byte("k"))
	require.ErrorIs(t, err, asterisque.ErrPanicked)
	require.True(t, asterisque.Repeatable(err))
	testkit.WantIdle(t, dialled, accepted)
}

// keyedNested calls its caller back until the depth is zero, always with the same key.
var keyedNested = asterisque.Func[[2]int, int](21, "keyed, nested")

// Nested calls of the same key run at once.
func TestKeys_NestedRunAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		newNode := func() *asterisque.Node {
			svc := asterisque.NewService()
			keyedNested.Handle(svc, func(ctx context.Context, p [2]int) (int, error) {
				if p[1] == 0 {
					return 0, nil
				}
				deeper, err := keyedNested.Call(ctx, asterisque.SessionOf(ctx), [2]int{p[0], p[1] - 1})
				return deeper + 1, err
			}, asterisque.WithKey(func(p [2]int) int { return p[0] }))
			return asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 10}))
		}
		here, there := newNode(), newNode()
		defer here.Close()
		defer there.Close()
		dialled, accepted := asterisquetest.ConnectNodes(t, here, there)
		ctx, cancel := context.WithTimeout(testkit.Background, time.Minute)
		defer cancel()
		var wg sync.WaitGroup
		for i := range 30 {
			wg.Go(func() {
				if got, err := keyedNested.Call(ctx, dialled, [2]int{i % 3, 10}); err != nil || got != 10 {
					t.Errorf("got %d, %v", got, err)
				}
			})
		}
		wg.Wait()
		testkit.WantIdle(t, dialled, accepted)
	})
}

// TestKeys_RandomCalls runs many callers of two sessions with random keys and priorities and random
// cancellation. Every handler checks that it is alone with its key, and that of the calls of one
// caller with one key none comes before an earlier one.
func TestKeys_RandomCalls(t *testing.T) {
	const keys, callers, each = 8, 32, 80
	type visit struct{ Key, Caller, Number int }
	var alone [keys]atomic.Int64
	var last [keys][callers]atomic.Int64
	visitFn := asterisque.Func[visit, int](70, "visit")
	svc := asterisque.NewService()
	visitFn.Handle(svc, func(ctx context.Context, v visit) (int, error) {
		if n := alone[v.Key].Add(1); n != 1 {
			t.Errorf("%d handlers of key %d run", n, v.Key)
		}
		defer alone[v.Key].Add(-1)
		if before := last[v.Key][v.Caller].Swap(int64(v.Number)); before >= int64(v.Number) {
			t.Errorf("caller %d, key %d: call %d came after call %d", v.Caller, v.Key, v.Number, before)
		}
		if v.Number%5 == 0 { // long enough for cancellations meanwhile
			_, err := testkit.Echo.Call(ctx, asterisque.SessionOf(ctx), "")
			return v.Number, err
		}
		return v.Number, nil
	}, asterisque.WithKey(func(v visit) int { return v.Key }), asterisque.WithConcurrency(4))
	here := asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
	there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Session: 6, Node: 8}), asterisque.WithLimits(asterisque.Limits{Inbound: testkit.BytesOf(128<<10, 1<<20)}))
	t.Cleanup(func() { here.Close(); there.Close() })
	var sessions []*asterisque.Session
	for range 2 {
		s, accepted := testkit.ConnectNodes(t, here, there)
		sessions = append(sessions, s, accepted)
	}
	var ran, gaveUp atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(caller), 7))
			var open []*pipe.Pipe
			for n := 1; n <= each; n++ {
				// Opens of one caller and one priority are sent in order.
				v := visit{rnd.IntN(keys), caller, n}
				params, err := codec.CBOR.Append(nil, &v)
				if err != nil {
					t.Error(err)
				}
				p, err := sessions[caller%2*2].Open(testkit.Background, visitFn.Number(), params, asterisque.WithPriority(priority.Priority(caller%3)))
				if err != nil {
					t.Error(err)
					return
				}
				open = append(open, p)
				if rnd.IntN(4) == 0 {
					open[rnd.IntN(len(open))].Abort(nil)
				}
				if rnd.IntN(10) == 0 {
					open[rnd.IntN(len(open))].Result(testkit.Background)
				}
			}
			for _, p := range open {
				if _, err := p.Result(testkit.Background); err == nil {
					ran.Add(1)
				} else if p.Err() != nil {
					gaveUp.Add(1)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d ran to their end, %d gave up", ran.Load(), gaveUp.Load())
	require.EqualValues(t, callers*each, ran.Load()+gaveUp.Load())
	require.NotZero(t, ran.Load())
	testkit.WantIdle(t, sessions...)
	require.Eventually(t, func() bool { st := there.Stats(); return st.Busy == 0 && st.Crowded == 0 }, testkit.Patience, time.Millisecond)
	for key := range keys { // no key is held
		_, err := visitFn.Call(testkit.Background, sessions[0], visit{key, 0, each + 1})
		require.NoError(t, err)
	}
}

// counted counts how often it was decoded.
type counted struct {
	N    int
	List []int
}

var decodings atomic.Int64

// UnmarshalCBOR decodes a list, the only value that is sent.
func (c *counted) UnmarshalCBOR(data []byte) error {
	decodings.Add(1)
	var list []int
	err := codec.CBOR.Decode(data, &list)
	*c = counted{len(list), list}
	return err
}

func (c counted) MarshalCBOR() ([]byte, error) { return codec.CBOR.Append(nil, c.List) }

// Parameters that were decoded for a key are not decoded again.
func TestKeys_DecodedOnce(t *testing.T) {
	lengths := asterisque.Func[counted, int](80, "lengths")
	for _, c := range []struct {
		name string
		key  asterisque.HandlerOption
		want int64 // for each call
	}{
		{"the key has the same type", asterisque.WithKey(func(c counted) int { return c.N }), 1},
		{"the key has another type", asterisque.WithKey(func(list []int) int { return len(list) }), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := asterisque.NewService()
			lengths.Handle(svc, func(_ context.Context, c counted) (int, error) { return len(c.List), nil }, c.key)
			dialled, accepted := testkit.Connect(t, svc)
			decodings.Store(0)
			for n := range 10 {
				got, err := lengths.Call(testkit.Background, dialled, counted{List: make([]int, n)})
				require.NoError(t, err)
				require.Equal(t, n, got)
			}
			require.Equal(t, 10*c.want, decodings.Load())
			testkit.WantIdle(t, accepted)
		})
	}
}
