//go:build !js

package wswire_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

func TestPrivate_Listener(t *testing.T) {
	server, _ := tlsOptions(t)
	for url, private := range map[string]bool{"ws://127.0.0.1:0": true, "ws://0.0.0.0:0": false, "wss://0.0.0.0:0": true} {
		l, err := wire.Listen(t.Context(), url, server)
		require.NoError(t, err)
		require.Equal(t, private, l.(wire.Private).Private(), url)
		l.Close()
	}
	node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	defer node.Close()
	err := node.ListenAndServe(context.Background(), "ws://0.0.0.0:0")
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	require.ErrorContains(t, err, "WithResume: the traffic with ws://")
}
