package pipe_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/pipe"
)

func TestSend_AllocatesNothing(t *testing.T) {
	p := new(pipe.Pipe)
	(*piping.End)(p).Init(piping.Config{Port: silent{}, Terms: new(piping.Terms), SendLimit: 1 << 50, Granted: piping.Unlimited})
	payload := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(1000, func() { p.Send(background, payload) }))
}

func TestAround_AllocatesNothing(t *testing.T) {
	p := new(pipe.Pipe)
	end := (*piping.End)(p)
	end.Init(piping.Config{Port: silent{}, Terms: &piping.Terms{Ledger: silent{}}, SendLimit: 1 << 50, Granted: piping.Unlimited})
	same := func(b []byte) ([]byte, error) { return b, nil }
	end.Wrap(piping.StreamInterceptor{Send: same, Recv: same}, piping.StreamInterceptor{Send: same, Recv: same})
	payload := make([]byte, 100)
	require.Zero(t, testing.AllocsPerRun(1000, func() { p.Send(background, payload) }))
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		end.BlockArrived(piping.Block{Payload: payload})
		p.Recv(background)
	}))
}

func TestPipe_Size(t *testing.T) {
	require.Equal(t, unsafe.Sizeof(piping.End{}), unsafe.Sizeof(pipe.Pipe{}))
}
