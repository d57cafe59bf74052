package callstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/attack"
)

func TestAttackDurable_KeysAreForgotten(t *testing.T) {
	t.Parallel()
	s := newFirstSeen(3)
	first := s.since("a", 1)
	require.Equal(t, first, s.since("a", 1))
	require.NotEqual(t, first, s.since("a", 2), "it is another entry")
	for i := range 1000 {
		s.since(fmt.Sprint(i), 1)
	}
	attack.Bounded(t, "entries that are remembered", len(s.byName), 3)
	require.Equal(t, 3, s.order.Len())
}
