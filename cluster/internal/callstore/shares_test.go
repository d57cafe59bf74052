package callstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestDurableShare_Expires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShares(Plan{Share: 0.5, Calls: 4, Bytes: 1000, Remember: time.Hour})
		require.NoError(t, s.check("a"))
		s.take("a", 2, 100)
		require.ErrorIs(t, s.check("a"), asterisque.ErrOverloaded)
		require.NoError(t, s.check("b"))
		s.take("b", 1, 500)
		require.ErrorIs(t, s.check("b"), asterisque.ErrOverloaded, "by its bytes")
		fakeclock.Sleep(time.Hour)
		require.ErrorIs(t, s.check("a"), asterisque.ErrOverloaded, "the last ones are there yet")
		fakeclock.Sleep(time.Hour)
		require.NoError(t, s.check("a"))
		require.Empty(t, s.before)
	})
}
