package asterisque_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/race"
)

// TestAnInterceptorCostsACallOneAllocationOnEachSide is what a Call needs.
func TestAnInterceptorCostsACallOneAllocationOnEachSide(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector drops what is kept for the next call")
	}
	text := strings.Repeat("*", 64)
	allocations := func(opts ...asterisque.Option) float64 {
		dialled, _ := connect(t, echoService(), opts...)
		return testing.AllocsPerRun(2000, func() {
			_, err := echo.Call(background, dialled, text)
			require.NoError(t, err)
		})
	}
	without := allocations()
	require.LessOrEqual(t, allocations(asterisque.WithMadeInterceptors(passes)), without+1)
	require.LessOrEqual(t, allocations(asterisque.WithServedInterceptors(passes)), without+1)
	require.LessOrEqual(t, allocations(asterisque.WithMadeInterceptors(passes, passes), asterisque.WithServedInterceptors(passes, passes)), without+2)
}
