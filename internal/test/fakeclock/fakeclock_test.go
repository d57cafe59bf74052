package fakeclock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestSleep_OnlyInBubbles(t *testing.T) {
	require.Panics(t, func() { fakeclock.Sleep(0) })
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		fakeclock.Sleep(time.Hour)
		require.Equal(t, time.Hour, time.Since(begin))
	})
}
