package quicwire

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// A listener reports that its wires are private.
func TestPrivate_Listener(t *testing.T) {
	server, _ := testtls.Configs(t)
	l, err := wire.Listen(t.Context(), "quic://0.0.0.0:0", wire.Options{TLS: server})
	require.NoError(t, err)
	defer l.Close()
	require.True(t, l.(wire.Private).Private())
}
