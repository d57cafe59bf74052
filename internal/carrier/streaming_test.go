package carrier_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// eager is a scripted Wire that never blocks a writer. Each batch is one entry of writes.
type eager struct{ *scripted }

func (w eager) WriteBatch(batch []byte) error { return w.WriteFrames([][]byte{batch}) }

func (w eager) TryWriteBatch(batch []byte) (int, error) { return len(batch), w.WriteBatch(batch) }

// TestStreaming_SmallBlocks puts Blocks that may be written with the next ones. The first Block
// after a received frame is written at once by its caller, because the peer may wait for it. The
// Blocks after it may belong to a stream.
func TestStreaming_SmallBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w *scripted
		r := newRig(t, func(cfg *carrier.Config) {
			w = cfg.Wire.(*scripted)
			cfg.Wire = eager{w}
		}).run()
		f := outbox.AcceptedFlow(0, 1)
		puts := func() {
			require.NoError(t, r.Put(&f, &outbox.Message{Type: message.BlockType, Payload: []byte{1}}, carrier.WithNext))
		}
		for range 3 {
			w.says(message.Ping{N: 1})
			synctest.Wait()
			for len(w.writes) > 0 {
				<-w.writes
			}
			puts()
			require.Len(t, w.writes, 1, "written when Put has returned")
			for range 100 {
				puts()
			}
			synctest.Wait() // for the goroutine that writes the gathered Blocks
			require.Less(t, len(w.writes), 1+100)
		}
	})
}
