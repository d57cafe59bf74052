package buffer_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestABufferIsLargeEnoughAndNotMuchLarger(t *testing.T) {
	for _, size := range []int{1, buffer.Least - 1, buffer.Least, buffer.Least + 1, 40_000, buffer.Most, buffer.Most + buffer.Slack, buffer.Most + buffer.Slack + 1} {
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
	b := buffer.Take(4096)
	require.False(t, b.Filled(3071))
	require.True(t, b.Filled(3072))
	require.True(t, b.Filled(len(b.B)))
}

func TestSnug(t *testing.T) {
	for size, want := range map[int]bool{1: false, 1023: false, 1024: true, 1024 + buffer.Slack: true, 1025 + buffer.Slack: false, 1535: false, 1536: true, 32 << 10: true, 32<<10 + buffer.Slack + 1: false, buffer.Most: true, buffer.Most + 1: false} {
		require.Equal(t, want, buffer.Snug(size), "%d", size)
	}
}
