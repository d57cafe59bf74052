package sizing_test

import (
	"math"
	"math/big"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/sizing"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

type (
	loop   struct{ Next *loop }
	mutual struct{ Other *other }
	other  struct{ Back []mutual }
	point  struct {
		X, Y float64
		Name *string
		_    []int
	}
)

func TestFree_OnlyBoundedTypes(t *testing.T) {
	const small = 256
	for want, types := range map[int][]reflect.Type{
		math.MaxInt: {
			reflect.TypeFor[int](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[[4]string](),
			reflect.TypeFor[struct{}](), reflect.TypeFor[time.Time](), reflect.TypeFor[big.Int](), reflect.TypeFor[func()](),
		},
		small: {reflect.TypeFor[point](), reflect.TypeFor[*point](), reflect.TypeFor[[3]point](), reflect.TypeFor[**int]()},
		0: {
			reflect.TypeFor[any](), reflect.TypeFor[[]int](), reflect.TypeFor[map[int]int](), reflect.TypeFor[loop](),
			reflect.TypeFor[mutual](), reflect.TypeFor[struct{ A [2]struct{ B any } }](), reflect.TypeFor[*[]point](),
		},
	} {
		for _, as := range types {
			require.Equal(t, want, sizing.Free(as), as)
		}
	}
}

func TestTally_Saturates(t *testing.T) {
	tally := sizing.NewTally(100)
	tally.Add(60)
	tally.Drop(50)
	require.Equal(t, 10, tally.Now())
	tally.Add(40)
	require.False(t, tally.Over())
	require.Equal(t, 60, tally.Bytes(), "what it was at most")
	for range 10 {
		tally.Add(sizing.Alloc(sizing.Times(math.MaxInt/2, math.MaxInt/2)))
	}
	require.True(t, tally.Over())
	require.Positive(t, tally.Bytes())
}

// TestReplaced_MatchesRange compares with the replacements in a range over a string.
func TestReplaced_MatchesRange(t *testing.T) {
	for _, s := range []string{"", "abc", "\xff\xff", "a\xe4b", "日本", "日\xe6\x97", "\xed\xa0\x80"} {
		require.GreaterOrEqual(t, sizing.Replaced([]byte(s)), len(string([]rune(s))), "%q", s)
		require.LessOrEqual(t, sizing.Replaced([]byte(s)), 3*len(s), "%q", s)
	}
}
