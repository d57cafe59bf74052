package buffer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestTake_FitsClosely(t *testing.T) {
	for _, size := range []int{1, buffer.Least - 1, buffer.Least, buffer.Least + 1, 40_000, 4 << 20, buffer.Most, buffer.Most + 1} {
		for range 2 { // new, and used before
			b := buffer.Take(size)
			require.True(t, buffer.Suits(len(b.B), size), "%d bytes for %d", len(b.B), size)
			b.Release()
		}
	}
}

func TestSuits(t *testing.T) {
	require.False(t, buffer.Suits(1024, 1025), "too small")
	require.False(t, buffer.Suits(4096, 2048), "twice as large")
	require.True(t, buffer.Suits(4096, 2049))
	require.True(t, buffer.Suits(1024, 1), "there is no smaller one")
}

func TestFilled(t *testing.T) {
	b := buffer.Take(64 << 10)
	require.True(t, b.Filled(len(b.B)))
	require.True(t, b.Filled(60<<10))
	require.False(t, b.Filled(59<<10))
}

func TestTake_IsFilled(t *testing.T) {
	for size := buffer.Least; size <= buffer.Most; size += 1 + size/1000 {
		require.True(t, buffer.Snug(size))
		require.True(t, buffer.Fills(size, size), "%d", size)
	}
	require.False(t, buffer.Snug(buffer.Least-1))
	require.False(t, buffer.Snug(buffer.Most+1))
}

func TestFills(t *testing.T) {
	require.True(t, buffer.Fills(64<<10, 64<<10+12))
	require.True(t, buffer.Fills(32<<10, 32<<10+12))
	require.False(t, buffer.Fills(31<<10, 32<<10+12), "more than a 16th would be empty")
}

func TestRelease_OfOtherSizes(t *testing.T) {
	for range 100 {
		(&buffer.Buffer{B: make([]byte, 5000)}).Release()
		require.GreaterOrEqual(t, len(buffer.Take(5000).B), 5000)
		require.GreaterOrEqual(t, len(buffer.Take(5100).B), 5100)
	}
}
