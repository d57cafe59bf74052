package calls

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// endingWire is a Wire that, once armed, ends the writing goroutine with runtime.Goexit.
type endingWire struct {
	wire.Wire
	armed atomic.Bool
}

func (w *endingWire) TryWriteBatch(batch []byte) (int, error) {
	if w.armed.Swap(false) {
		runtime.Goexit()
	}
	return w.Wire.(wire.TryWriter).TryWriteBatch(batch)
}

func (w *endingWire) WriteBatch(batch []byte) error {
	return w.Wire.(wire.BatchWriter).WriteBatch(batch)
}

// TestCall_GoexitOfWire makes a Wire end the goroutine of a caller with runtime.Goexit while its
// call is being sent. The library does not reuse the call: later calls of the node receive their
// own answers.
func TestCall_GoexitOfWire(t *testing.T) {
	here, there := testkit.NewNode(t), testkit.NewNode(t, asterisque.WithService(testkit.EchoService()))
	attach := func() (*asterisque.Session, *endingWire) {
		a, b := wire.Pipe()
		go there.Accept(testkit.Background, b) // ends with the handshake
		w := &endingWire{Wire: a}
		s, err := here.Attach(testkit.Background, w)
		require.NoError(t, err)
		return s, w
	}
	for range 20 {
		s, w := attach()
		w.armed.Store(true)
		over := make(chan struct{})
		go func() {
			defer close(over)
			testkit.Echo.Call(testkit.Background, s, "lost")
			t.Error("the goroutine continues")
		}()
		<-over
		<-s.Done()
		s, _ = attach()
		for i := range 20 {
			want := fmt.Sprint(i)
			got, err := testkit.Echo.Call(testkit.Background, s, want)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
}
