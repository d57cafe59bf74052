package msgpack_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/msgpack"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// TestAttack_LengthsAllocs decodes lengths beyond the end of the bytes, without a session: they
// cause no allocation.
func TestAttack_LengthsAllocs(t *testing.T) {
	for name, data := range map[string]string{
		"an array of 2^32-1":       "\xdd\xff\xff\xff\xff",
		"a map of 2^32-1":          "\xdf\xff\xff\xff\xff",
		"a string of 4 GiB":        "\xdb\xff\xff\xff\xff",
		"bytes of 4 GiB":           "\xc6\xff\xff\xff\xff",
		"an ext of 4 GiB":          "\xc9\xff\xff\xff\xff\x05",
		"arrays of 65535, 30 deep": strings.Repeat("\xdc\xff\xff", 30),
		"maps of 65535, 30 deep":   strings.Repeat("\xde\xff\xff\x01", 30),
		"10^6 arrays, nested":      strings.Repeat("\x91", 1_000_000),
		"10^6 maps, nested":        strings.Repeat("\x81\x01", 1_000_000),
	} {
		for _, v := range []any{new(any), new([]wide), new(map[string]wide), new(string), new([]byte), new(tree), new(msgpack.Ext), new(record)} {
			most := len(data) + 64<<10
			n := weightest.AllocatedAtMost(most, func() { require.Error(t, msgpack.Values.Decode([]byte(data), v)) })
			attack.Bounded(t, name, n, most)
		}
	}
}

// TestAttack_EqualKeys decodes as many keys as fit into a message, all equal or all different, in
// maps of all kinds: that takes little time.
func TestAttack_EqualKeys(t *testing.T) {
	const n = 100_000
	equal := append([]byte{0xdf, 0, 1, 0x86, 0xa0}, strings.Repeat("\xa1a\x01", n)...)
	for _, v := range []any{new(any), new(map[string]int), new(record), new(map[any]any)} {
		begin := cpuTime(t)
		require.ErrorContains(t, msgpack.Values.Decode(equal, v), "a key twice")
		require.NoError(t, msgpack.Values.Decode(named(n, "\xc0"), v))
		require.Less(t, cpuTime(t)-begin, 5*time.Second, "%T", v)
	}
}

var (
	listOf  = asterisque.Func[[]wide, int](20, "list of structs")
	anyOf   = asterisque.Func[any, int](21, "anything")
	mapOfs  = asterisque.Func[map[string]wide, int](22, "map of structs")
	record1 = asterisque.Func[record, int](23, "a record")
)

func count[P any](calls *atomic.Int64) func(context.Context, P) (int, error) {
	return func(context.Context, P) (int, error) { return int(calls.Add(1)), nil }
}

// attacked returns both ends of a session with a node that counts calls in both directions.
func attacked(t *testing.T, opts ...asterisque.Option) (dialled, accepted *asterisque.Session, calls *atomic.Int64) {
	calls = new(atomic.Int64)
	svc := asterisque.NewService()
	listOf.Handle(svc, count[[]wide](calls))
	anyOf.Handle(svc, count[any](calls))
	mapOfs.Handle(svc, count[map[string]wide](calls), asterisque.WithInline())
	record1.Handle(svc, count[record](calls))
	here, there := asterisque.NewNode(opts...), asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { here.Close(); there.Close() })
	dialled, accepted = asterisquetest.ConnectNodes(t, here, there)
	return dialled, accepted, calls
}

// TestAttackDecoding_BeforeAlloc sends short values that would need much memory, and requires that
// they are rejected before they are decoded.
func TestAttackDecoding_BeforeAlloc(t *testing.T) {
	const size = 4<<20 - 64
	dialled, accepted, calls := attacked(t, asterisque.WithCodecs(msgpack.Values))
	for name, c := range map[string]struct {
		function uint16
		params   []byte
	}{
		"nils as structs":   {listOf.Number(), repeated(size-5, "\xc0")},
		"empty maps":        {listOf.Number(), repeated(size-5, "\x80")},
		"small maps as any": {anyOf.Number(), repeated(size/3-5, "\x81\x01\x02")},
		"a map of structs":  {mapOfs.Number(), named(size/9, "\xc0")},
	} {
		t.Run(name, func(t *testing.T) {
			const most = 16 * (4 << 20)
			n := weightest.AllocatedAtMost(most, func() {
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						_, err := dialled.Call(t.Context(), c.function, c.params)
						require.ErrorIs(t, err, asterisque.ErrBadParams)
						require.ErrorContains(t, err, "Limits.Expansion")
					})
				}
				wg.Wait()
			})
			attack.Bounded(t, "allocated for 4 calls of 4 MiB: "+name, n, most)
		})
	}
	require.Zero(t, calls.Load())
	requireIdle(t, accepted)
}

func requireIdle(t *testing.T, s *asterisque.Session) {
	require.Eventually(t, func() bool {
		st := s.Stats()
		return st.Running+st.Waiting == 0 && st.Classes.Calls.Held == 0
	}, hangs, time.Millisecond, "what the calls have held is given back")
}

// TestAttack_Malformed makes many calls with values that are malformed in all ways, and a valid one
// now and then. They leave nothing behind.
func TestAttack_Malformed(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector adds to each object")
	}
	dialled, accepted, calls := attacked(t, asterisque.WithCodecs(msgpack.Values, codec.CBOR))
	random := rand.New(rand.NewPCG(1, 2))
	honest := encoded(t, []any{"a", 1, map[string]any{"k": []byte("bytes")}, time.Unix(1, 2)})
	functions := []uint16{listOf.Number(), anyOf.Number(), mapOfs.Number(), record1.Number()}
	play := func(n int) {
		for i := range n {
			params := append([]byte{}, honest...)
			for range 1 + random.IntN(3) {
				params[random.IntN(len(params))] = byte(random.Uint32())
			}
			_, err := dialled.Call(t.Context(), functions[i%len(functions)], params)
			if err != nil {
				require.ErrorIs(t, err, asterisque.ErrBadParams)
			}
		}
	}
	play(1000) // fill the caches first
	grown := weightest.GrownAtMost(256<<10, func() any { play(5000); return dialled })
	attack.Bounded(t, "held after 5,000 calls with values that are wrong", grown, 256<<10)
	before := calls.Load()
	_, err := dialled.Call(t.Context(), anyOf.Number(), honest)
	require.NoError(t, err)
	require.Equal(t, before+1, calls.Load())
	requireIdle(t, accepted)
}
