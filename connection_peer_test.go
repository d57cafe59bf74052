package asterisque_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

func TestAConnectionTakesNoOtherPeerThanTheOneThatIsMeant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, other, meant := asterisque.NewNode(), asterisque.NewNode(asterisque.WithID("b")), asterisque.NewNode(asterisque.WithID("a"))
		for _, n := range []*asterisque.Node{here, other, meant} {
			defer n.Close()
		}
		l := &links{to: other}
		conn, err := here.Connect(background, "", asterisque.Reconnection{PeerID: "a", Background: true, Dial: l.dial})
		require.NoError(t, err)
		synctest.Wait()
		require.Nil(t, conn.Session())
		require.ErrorContains(t, conn.Outage(), `the node there calls itself "b", and not "a"`)
		require.Empty(t, here.Sessions())

		l.mu.Lock()
		l.to = meant
		l.mu.Unlock()
		_, err = conn.Call(background, 1, nil)
		require.ErrorIs(t, err, asterisque.ErrNoFunction, "the one that is meant has answered")
		require.Equal(t, "a", conn.Session().Peer().ID)
	})
}
