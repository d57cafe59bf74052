package interceptors

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestInterceptor_Allocs: interceptors cost a call one allocation on each side, for its Call.
func TestInterceptor_Allocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector drops what is kept for the next call")
	}
	text := strings.Repeat("*", 64)
	allocations := func(opts ...asterisque.Option) float64 {
		dialled, _ := testkit.Connect(t, testkit.EchoService(), opts...)
		return testing.AllocsPerRun(2000, func() {
			_, err := testkit.Echo.Call(testkit.Background, dialled, text)
			require.NoError(t, err)
		})
	}
	without := allocations()
	require.LessOrEqual(t, allocations(asterisque.WithOutboundInterceptors(testkit.Passes)), without+1)
	require.LessOrEqual(t, allocations(asterisque.WithInboundInterceptors(testkit.Passes)), without+1)
	require.LessOrEqual(t, allocations(asterisque.WithOutboundInterceptors(testkit.Passes, testkit.Passes), asterisque.WithInboundInterceptors(testkit.Passes, testkit.Passes)), without+2)
}
