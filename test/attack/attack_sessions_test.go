package attack

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
)

// TestAttackSessions_Idle begins sessions of one address, without authentication, which are then
// idle.
func TestAttackSessions_Idle(t *testing.T) {
	node := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()))
	address := testkit.Listen(t, node, "tcp://127.0.0.1:0", wire.Options{})[len("tcp://"):]
	sessions, before := testkit.Long(1000, 10_000), weightest.Heap()
	for range sessions {
		c, err := net.Dial("tcp", address)
		require.NoError(t, err)
		defer c.Close()
		p := &testkit.RawPeer{T: t, W: wire.FromConn(c)}
		p.Send(testkit.Hello())
		p.Control() // its session has begun
	}
	attack.Bounded(t, "bytes counted for an idle session", node.Stats().Held/sessions, 16<<10)
	attack.Bounded(t, "bytes held for it, and for its peer", weightest.HeldSince(before, sessions*16<<10)/sessions, 16<<10)
	attack.Bounded(t, "idle sessions beside, honest handshakes that failed", 20-honestDials(t, "127.0.0.2", address), 0)
}
