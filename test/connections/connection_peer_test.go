package connections

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// A connection accepts no other peer than the intended one.
func TestConnection_OtherPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, other, meant := asterisque.NewNode(), asterisque.NewNode(asterisque.WithID("b")), asterisque.NewNode(asterisque.WithID("a"))
		for _, n := range []*asterisque.Node{here, other, meant} {
			defer n.Close()
		}
		l := &testkit.Links{To: other}
		conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{PeerID: "a", Background: true, Dial: l.Dial})
		require.NoError(t, err)
		synctest.Wait()
		require.Nil(t, conn.Session())
		require.ErrorContains(t, conn.Outage(), `the node there calls itself "b", and not "a"`)
		require.Empty(t, here.Sessions())

		l.Mu.Lock()
		l.To = meant
		l.Mu.Unlock()
		_, err = conn.Call(testkit.Background, 1, nil)
		require.ErrorIs(t, err, asterisque.ErrNoFunction, "the one that is meant has answered")
		require.Equal(t, "a", conn.Session().Peer().ID)
	})
}
