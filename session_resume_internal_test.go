package asterisque

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// A secret becomes void as soon as its peer has resumed, even if the peer sends nothing.
func TestResume_FormerSecretVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := NewNode(WithResume(Resume{For: time.Minute}), WithTimeouts(Timeouts{Ping: -1})), NewNode(WithResume(Resume{For: time.Minute}), WithTimeouts(Timeouts{Ping: -1}))
		defer here.Close()
		defer there.Close()
		var last wire.Wire
		conn, err := here.Connect(context.Background(), "", Reconnection{Dial: func(context.Context) (wire.Wire, error) {
			a, b := wire.Pipe()
			go there.Accept(context.Background(), b) // ends with the handshake
			last = a
			return a, nil
		}})
		require.NoError(t, err)
		defer conn.Close()
		synctest.Wait()
		s := there.Sessions()[0]
		before := s.res.latest()
		last.Close()
		time.Sleep(time.Second)
		synctest.Wait()
		require.False(t, s.Away())
		require.NotEqual(t, before, s.res.latest())
		require.False(t, s.res.entitles(before))
		require.True(t, s.res.entitles(s.res.latest()))
	})
}
