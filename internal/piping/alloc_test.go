package piping_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

// silent is a port that remembers nothing.
type silent struct{ port }

func (*silent) Send(context.Context, piping.Outgoing) error { return nil }

func TestABlockThatFitsIsSentWithoutAnAllocation(t *testing.T) {
	p := new(pipe.Pipe)
	(*piping.End)(p).Init(piping.Config{Port: new(silent), Terms: new(piping.Terms), SendLimit: 1 << 50, Granted: piping.Unlimited})
	payload := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(1000, func() { p.Send(background, payload) }))
}
