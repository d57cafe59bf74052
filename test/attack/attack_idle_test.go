package attack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/testkit"
)

// TestAttackIdle_CreditForAPeerThatDoesNotRead has a peer that grants credit to idle streams again
// and again, which is handed back, and reads none of that.
func TestAttackIdle_CreditForAPeerThatDoesNotRead(t *testing.T) {
	const streams = 40
	synctest.Test(t, func(t *testing.T) {
		a, b := testkit.Unbuffered()
		svc := asterisque.NewService()
		svc.Handle(50, "waits", testkit.WaitForContext)
		node := testkit.NewNode(t, asterisque.WithService(svc), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		go node.Accept(testkit.Background, b) // ends with the handshake
		p := &testkit.RawPeer{T: t, W: a}
		hello := testkit.Hello()
		hello.Window = 4096
		p.Send(hello)
		require.IsType(t, message.Sync{}, p.Control())
		for i := range streams {
			p.Send(&message.Open{Pipe: uint64(2 * i), Function: 50, Meta: message.Meta{Stream: true, Window: 1 << 20}})
		}
		for n := range 100 {
			time.Sleep(time.Second) // of the bubble
			for i := range streams {
				p.Send(message.Credit{Pipe: uint64(2 * i), Limit: uint64(n+2) << 20})
			}
		}
		synctest.Wait()
		held := node.Sessions()[0].Stats().Outbound.Messages
		require.Greater(t, held, streams, "it is handed back again")
		require.LessOrEqual(t, held, 1024+streams)
		a.Close()
	})
}
