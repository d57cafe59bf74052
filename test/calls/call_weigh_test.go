package calls

import (
	"bytes"
	"context"
	"encoding/binary"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
)

// item is the type that a null of one byte is decoded into.
type item struct {
	A, B, C, D, E, F, G, H int64
}

// nulls returns a CBOR list of n nulls.
func nulls(n int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0x9a}, uint32(n)), bytes.Repeat([]byte{0xf6}, n)...)
}

// allocated returns the total number of bytes allocated so far.
func allocated() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.TotalAlloc)
}

// wantTooMuch requires that err reports a value that would become too large.
func wantTooMuch(t *testing.T, err, want error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.ErrorContains(t, err, "Limits.Expansion")
}

var (
	listOf  = asterisque.Func[[]item, int](80, "list of items")
	anyOf   = asterisque.Func[any, int](81, "anything")
	itemsOf = asterisque.Func[int, []item](82, "items")
	flowOf  = asterisque.Stream[struct{}, []item, []item, int](83, "flow of items")
)

// count counts its calls and returns its parameter.
func count[P any](calls *atomic.Int64) func(context.Context, P) (int, error) {
	return func(context.Context, P) (int, error) { return int(calls.Add(1)), nil }
}

func TestAttackDecoding_BeforeAlloc(t *testing.T) {
	const size = 4<<20 - 64
	for name, c := range map[string]struct {
		values   codec.Values
		function uint16
		params   []byte
		opts     []asterisque.HandlerOption
	}{
		"nulls as structs":  {codec.CBOR, listOf.Number(), nulls(size - 5), nil},
		"the same, inline":  {codec.CBOR, listOf.Number(), nulls(size - 5), []asterisque.HandlerOption{asterisque.WithInline()}},
		"small maps as any": {codec.CBOR, anyOf.Number(), append([]byte{0x9a, 0, 0x10, 0, 0}, bytes.Repeat([]byte{0xa1, 1, 2}, 1<<20)...), nil},
		"JSON as structs":   {codec.JSON, listOf.Number(), append(append([]byte{'['}, bytes.Repeat([]byte("{},"), size/3)...), "{}]"...), nil},
		"JSON as any":       {codec.JSON, anyOf.Number(), append(append([]byte{'['}, bytes.Repeat([]byte(`{"":0},`), size/7-1)...), "{}]"...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int64
			svc := asterisque.NewService()
			listOf.Handle(svc, count[[]item](&calls), c.opts...)
			anyOf.Handle(svc, count[any](&calls), c.opts...)
			dialled, accepted := testkit.Connect(t, svc, asterisque.WithCodecs(c.values))
			before := allocated()
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					_, err := dialled.Call(testkit.Background, c.function, c.params)
					wantTooMuch(t, err, asterisque.ErrBadParams)
					require.True(t, asterisque.Repeatable(err), "it has not run")
				})
			}
			wg.Wait()
			require.Less(t, allocated()-before, 16*(4<<20), "what has arrived, and a copy of it")
			require.Zero(t, calls.Load())
			require.Eventually(t, func() bool { return testkit.Busy(accepted) == "" && accepted.Stats().Classes.Calls.Held == 0 }, testkit.Patience, time.Millisecond)
		})
	}
}

// smallNode has 1 MiB for running calls, and messages of 128 KiB.
func smallNode(opts ...asterisque.Option) []asterisque.Option {
	return append(opts, asterisque.WithLimits(asterisque.Limits{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 1 << 20}}}))
}

// stage runs handlers until it releases each of them.
type stage struct {
	began chan int // the length of their list
	leave chan struct{}
	wake  chan struct{} // closed for those with the list of a sleeper
	most  atomic.Int32  // that ran at once, sleepers apart
	runs  atomic.Int32
}

const sleeper = 100

func (s *stage) handle(_ context.Context, list []item) (int, error) {
	s.began <- len(list)
	if len(list) == sleeper {
		<-s.wake
		return len(list), nil
	}
	now := s.runs.Add(1)
	defer s.runs.Add(-1)
	s.most.Store(max(s.most.Load(), now))
	<-s.leave
	return len(list), nil
}

func emptyStage() *stage {
	return &stage{began: make(chan int, 16), leave: make(chan struct{}), wake: make(chan struct{})}
}

func newStage(t *testing.T, opts ...asterisque.Option) (s *stage, dialled, accepted *asterisque.Session) {
	s = emptyStage()
	svc := testkit.EchoService()
	listOf.Handle(svc, s.handle)
	dialled, accepted = testkit.Connect(t, svc, smallNode(opts...)...)
	return s, dialled, accepted
}

// call makes a call with a list of n nulls, and waits until the call has arrived.
func (s *stage) call(t *testing.T, wg *sync.WaitGroup, dialled, accepted *asterisque.Session, n int, opts ...asterisque.CallOption) {
	before := accepted.Stats().Served
	wg.Go(func() {
		_, err := dialled.Call(testkit.Background, listOf.Number(), nulls(n), opts...)
		require.NoError(t, err)
	})
	require.Eventually(t, func() bool { return accepted.Stats().Served > before }, testkit.Patience, time.Millisecond)
}

// Large values are decoded one at a time.
func TestAttackDecoding_OneAtATime(t *testing.T) {
	const n, each = 30 << 10, 30 << 10 * 64
	s, dialled, accepted := newStage(t, asterisque.WithLimits(asterisque.Limits{Expansion: asterisque.Expansion{Times: 128, Plus: -1}}))
	var wg sync.WaitGroup
	s.call(t, &wg, dialled, accepted, sleeper)
	require.Equal(t, sleeper, <-s.began, "a small one, which sleeps meanwhile, stops no large one")
	for range 4 {
		s.call(t, &wg, dialled, accepted, n)
	}
	for range 4 {
		require.Equal(t, n, <-s.began)
		require.Eventually(t, func() bool { return accepted.Stats().Running == 2 }, testkit.Patience, time.Millisecond, "other calls may be about to end")
		st := accepted.Stats()
		require.Greater(t, st.Holding, each)
		require.Less(t, st.Holding, each+each/8, "the other calls are not decoded")
		for range 10 {
			_, err := testkit.Echo.Call(testkit.Background, dialled, "small calls run beside it")
			require.NoError(t, err)
		}
		s.leave <- struct{}{}
	}
	close(s.wake)
	wg.Wait()
	testkit.WantIdle(t, accepted)
	require.Zero(t, accepted.Stats().Holding)
	require.EqualValues(t, 1, s.most.Load())
}

// A large call is not overtaken by others that are not small.
func TestWeigh_LargeNotOvertaken(t *testing.T) {
	const half, all, some = 8 << 10, 30 << 10, 2 << 10 // 64 bytes each, of a room of 1 MiB
	s, dialled, accepted := newStage(t, asterisque.WithLimits(asterisque.Limits{Expansion: asterisque.Expansion{Times: 128, Plus: -1}}))
	var wg sync.WaitGroup
	s.call(t, &wg, dialled, accepted, half)
	require.Equal(t, half, <-s.began)
	s.call(t, &wg, dialled, accepted, all)
	s.call(t, &wg, dialled, accepted, some)
	s.call(t, &wg, dialled, accepted, some+1, asterisque.WithPriority(1))
	require.Equal(t, some+1, <-s.began, "it fits, and is more urgent")
	require.Equal(t, 2, accepted.Stats().Running)
	s.leave <- struct{}{}
	s.leave <- struct{}{}
	require.Equal(t, all, <-s.began, "as soon as no other large one runs")
	require.Equal(t, 1, accepted.Stats().Running)
	s.leave <- struct{}{}
	require.Equal(t, some, <-s.began)
	s.leave <- struct{}{}
	wg.Wait()
	testkit.WantIdle(t, accepted)
}

// Decoding a result that is too large fails the call at its caller.
func TestAttackDecoding_Results(t *testing.T) {
	svc := asterisque.NewService()
	hostile := asterisque.Func[int, []*struct{}](itemsOf.Number(), "hostile")
	hostile.Handle(svc, func(_ context.Context, n int) ([]*struct{}, error) { return make([]*struct{}, n), nil })
	dialled, _ := testkit.Connect(t, svc)
	before := allocated()
	_, err := itemsOf.Call(testkit.Background, dialled, 1<<20)
	wantTooMuch(t, err, asterisque.ErrBadResult)
	require.Less(t, allocated()-before, 32<<20)
	list, err := itemsOf.Call(testkit.Background, dialled, 1000)
	require.NoError(t, err, "64 KiB are always fine")
	require.Len(t, list, 1000)
}

// Decoding an element that is too large fails the receiver.
func TestAttackDecoding_Elements(t *testing.T) {
	const n = 60_000
	svc := asterisque.NewService()
	flowOf.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]item, []item]) (int, error) {
		_, err := p.Recv(ctx)
		wantTooMuch(t, err, asterisque.ErrBadParams)
		list, err := p.Recv(ctx)
		require.NoError(t, err, "the next one may be fine")
		return len(list), p.Untyped().Send(ctx, nulls(n))
	})
	dialled, _ := testkit.Connect(t, svc)
	call, err := flowOf.Open(testkit.Background, dialled, struct{}{})
	require.NoError(t, err)
	require.NoError(t, call.Untyped().Send(testkit.Background, nulls(n)))
	require.NoError(t, call.Send(testkit.Background, make([]item, 3)))
	_, err = call.Recv(testkit.Background)
	wantTooMuch(t, err, asterisque.ErrBadResult)
	got, err := call.Result(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, 3, got)
}

// Decoding a key that is too large refuses the call.
func TestAttackDecoding_Keys(t *testing.T) {
	var calls, keys atomic.Int64
	svc := asterisque.NewService()
	svc.Handle(listOf.Number(), "untyped", testkit.WaitForContext, asterisque.WithKey(func(p []item) int { return int(keys.Add(1)) }))
	anyOf.Handle(svc, count[any](&calls), asterisque.WithKey(func(p any) int { return int(keys.Add(1)) }))
	dialled, accepted := testkit.Connect(t, svc)
	for function, params := range map[uint16][]byte{
		listOf.Number(): nulls(1 << 18),
		anyOf.Number():  append([]byte{0x9a, 0, 4, 0, 0}, bytes.Repeat([]byte{0xa1, 1, 2}, 1<<18)...),
	} {
		_, err := dialled.Call(testkit.Background, function, params)
		wantTooMuch(t, err, asterisque.ErrBadParams)
	}
	require.Zero(t, calls.Load()+keys.Load())
	_, err := anyOf.Call(testkit.Background, dialled, any([]any{1, 2, 3}))
	require.NoError(t, err)
	require.EqualValues(t, 1, keys.Load())
	testkit.WantIdle(t, accepted)
	require.Zero(t, accepted.Stats().Holding)
}

// TestWeigh_RefusedLeavesRoom requires that refused calls release their memory: it makes more of
// them than there is room for.
func TestWeigh_RefusedLeavesRoom(t *testing.T) {
	svc := testkit.EchoService()
	var calls atomic.Int64
	listOf.Handle(svc, count[[]item](&calls))
	keyed := asterisque.Func[string, int](84, "keyed")
	keyed.Handle(svc, count[string](&calls), asterisque.WithKey(func(s string) string { return s }))
	dialled, accepted := testkit.Connect(t, svc, smallNode()...)
	for range 20 { // each costs some 100 KiB of 256
		_, err := dialled.Call(testkit.Background, listOf.Number(), nulls(100<<10))
		wantTooMuch(t, err, asterisque.ErrBadParams)
		_, err = dialled.Call(testkit.Background, keyed.Number(), nulls(100<<10))
		require.ErrorIs(t, err, asterisque.ErrBadParams)
	}
	_, err := testkit.Echo.Call(testkit.Background, dialled, "still here")
	require.NoError(t, err)
	require.Zero(t, calls.Load())
	require.Zero(t, accepted.Stats().Classes.Calls.Held)
}

// plainCBOR is a user's codec without a Weigher.
type plainCBOR struct{ codec.Values }

// Values of a codec without a Weigher are not bounded.
func TestWeigh_NoWeigher(t *testing.T) {
	var calls atomic.Int64
	svc := asterisque.NewService()
	listOf.Handle(svc, count[[]item](&calls))
	dialled, _ := testkit.Connect(t, svc, asterisque.WithCodecs(plainCBOR{codec.CBOR}))
	_, err := dialled.Call(testkit.Background, listOf.Number(), nulls(60_000))
	require.NoError(t, err)
	require.EqualValues(t, 1, calls.Load())
}

// TestWeigh_OrdinaryLists requires that the default limit admits ordinary lists of structs.
func TestWeigh_OrdinaryLists(t *testing.T) {
	type person struct {
		Name  string            `json:"name"`
		Age   int               `json:"age"`
		Tags  []string          `json:"tags"`
		Email *string           `json:"email"`
		Other map[string]string `json:"other"`
	}
	mail := "somebody@example.com"
	people := make([]person, 10_000)
	for i := range people {
		people[i] = person{Name: "somebody", Age: 42, Tags: []string{"a", "b"}, Email: &mail, Other: map[string]string{"town": "Ulm"}}
	}
	for _, values := range []codec.Values{codec.CBOR, codec.JSON} {
		t.Run(values.Name(), func(t *testing.T) {
			svc := asterisque.NewService()
			typed := asterisque.Func[[]person, []person](85, "typed")
			typed.Handle(svc, func(_ context.Context, p []person) ([]person, error) { return p, nil })
			loose := asterisque.Func[any, any](86, "loose")
			loose.Handle(svc, func(_ context.Context, p any) (any, error) { return p, nil })
			dialled, _ := testkit.Connect(t, svc, asterisque.WithCodecs(values))
			got, err := typed.Call(testkit.Background, dialled, people)
			require.NoError(t, err)
			require.Len(t, got, len(people))
			again, err := loose.Call(testkit.Background, dialled, any(people))
			require.NoError(t, err)
			require.Len(t, again, len(people))
		})
	}
}

// TestWeigh_Allocs would find allocations by the weighing.
func TestWeigh_Allocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	svc := asterisque.NewService()
	var calls atomic.Int64
	pointers := asterisque.Func[[]int, int](87, "numbers")
	pointers.Handle(svc, count[[]int](&calls))
	bounded, _ := testkit.Connect(t, svc)
	free, _ := testkit.Connect(t, svc, asterisque.WithCodecs(plainCBOR{codec.CBOR}))
	allocs := func(s *asterisque.Session) float64 {
		return testing.AllocsPerRun(500, func() { pointers.Call(testkit.Background, s, []int{1, 2, 3}) })
	}
	require.LessOrEqual(t, allocs(bounded), allocs(free)+0.5)
}

// TestAttackDecoding_Nested uses a peer that calls back, with values that exceed the room when
// decoded, although calls back wait for none.
func TestAttackDecoding_Nested(t *testing.T) {
	const n, fit = 7 << 10, 2 // of 64 bytes each, of a room of 1 MiB
	s := emptyStage()
	back := asterisque.Func[int, int](88, "calls back")
	here, there := asterisque.NewService(), asterisque.NewService()
	listOf.Handle(here, s.handle)
	back.Handle(there, func(ctx context.Context, calls int) (int, error) {
		var wg sync.WaitGroup
		var refused atomic.Int64
		for range calls {
			wg.Go(func() {
				if _, err := asterisque.SessionOf(ctx).Call(ctx, listOf.Number(), nulls(n)); err != nil {
					require.ErrorIs(t, err, asterisque.ErrOverloaded)
					if refused.Add(1) == int64(calls-fit) {
						close(s.leave)
					}
				}
			})
		}
		wg.Wait()
		return int(refused.Load()), nil
	})
	opts := smallNode(asterisque.WithLimits(asterisque.Limits{Expansion: asterisque.Expansion{Times: 128, Plus: -1}}))
	a, b := asterisque.NewNode(append(opts, asterisque.WithService(here))...), asterisque.NewNode(append(opts, asterisque.WithService(there))...)
	t.Cleanup(func() { a.Close(); b.Close() })
	dialled, _ := testkit.ConnectNodes(t, a, b)
	refused, err := back.Call(testkit.Background, dialled, 5)
	require.NoError(t, err)
	require.Equal(t, 5-fit, refused)
	testkit.WantIdle(t, dialled)
	require.Zero(t, dialled.Stats().Holding)
}
