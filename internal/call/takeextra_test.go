package call

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
)

func TestTakeExtra(t *testing.T) {
	o := &outgoing{terms: piping.Terms{PeerEarly: 4096}, extra: new(flow.Credit)}
	o.extra.Init(1_000_000, 0)
	require.EqualValues(t, 61_440, o.takeExtra(), "a window of 64 KiB")
	total := uint64(61_440)
	for range 500 {
		total += o.takeExtra()
	}
	require.LessOrEqual(t, total, uint64(1_000_000))
	require.Greater(t, total, uint64(999_900), "each takes an eighth of what is left")
	require.Zero(t, o.takeExtra())
	o.extra.Release(80_000)
	require.EqualValues(t, 10_000, o.takeExtra(), "an Open that was not sent has taken nothing")
	o.extra.Raise(2_000_000)
	require.EqualValues(t, 61_440, o.takeExtra())
	o.terms.PeerEarly = 64 << 10
	require.Zero(t, o.takeExtra(), "the guaranteed credit is as much")
}

func TestTakeExtra_None(t *testing.T) {
	o := &outgoing{terms: piping.Terms{PeerEarly: 512}}
	require.Zero(t, o.takeExtra())
}
