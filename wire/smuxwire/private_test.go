package smuxwire_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// A listener reports whether its wires are private.
func TestPrivate_Listener(t *testing.T) {
	server, _ := tlsOptions(t)
	for url, private := range map[string]bool{"smux://127.0.0.1:0": true, "smux://0.0.0.0:0": false, "smux+tls://0.0.0.0:0": true} {
		l, err := wire.Listen(t.Context(), url, server)
		require.NoError(t, err)
		require.Equal(t, private, l.(wire.Private).Private(), url)
		l.Close()
	}
	node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	defer node.Close()
	err := node.ListenAndServe(context.Background(), "smux://0.0.0.0:0")
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	require.ErrorContains(t, err, "WithResume: the traffic with smux://")
}
