package pipe_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestABlockThatFitsIsSentWithoutAnAllocation(t *testing.T) {
	p := new(pipe.Pipe)
	(*piping.End)(p).Init(piping.Config{Port: silent{}, Terms: new(piping.Terms), SendLimit: 1 << 50, Granted: piping.Unlimited})
	payload := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(1000, func() { p.Send(background, payload) }))
}

func TestAPipeIsNoLargerThanItsEnd(t *testing.T) {
	require.Equal(t, unsafe.Sizeof(piping.End{}), unsafe.Sizeof(pipe.Pipe{}))
}
