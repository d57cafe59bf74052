package sessions

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// countedWire counts the batches that are written without blocking.
type countedWire struct {
	wire.Wire
	wire.BatchWriter
	batches int // belongs to the writer
}

func (w *countedWire) TryWriteBatch(batch []byte) (int, error) {
	w.batches++
	return w.Wire.(wire.TryWriter).TryWriteBatch(batch)
}

// The final frames of a session leave in one write.
func TestEnd_OneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		here, there := wire.Pipe()
		w := &countedWire{Wire: there, BatchWriter: there.(wire.BatchWriter)}
		sessions := make(chan *asterisque.Session)
		go func() { // ends with the handshake
			s, _ := node.Accept(testkit.Background, w)
			sessions <- s
		}()
		p := &testkit.RawPeer{T: t, W: here}
		p.Send(testkit.Hello())
		require.IsType(t, message.Sync{}, p.Control())
		s := <-sessions
		go s.Close() // ends with the wire
		require.Equal(t, message.Drain{None: true}, p.Control())
		bye, _ := p.Control().(message.SessionClose)
		require.Equal(t, codec.SessionClosed, bye.Code)
		p.W.Close()
		<-s.Done()
		synctest.Wait()
		require.Equal(t, 1, w.batches)
	})
}
