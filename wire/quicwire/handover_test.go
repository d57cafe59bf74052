package quicwire

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// A socket belongs to one process.
func TestHandover_Unsupported(t *testing.T) {
	server, _ := testtls.Configs(t)
	_, err := wire.Listen(t.Context(), "quic://127.0.0.1:0", wire.Options{TLS: server, ReusePort: true})
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.ErrorContains(t, err, "a QUIC socket has no port that several could listen at")
	l, err := wire.Listen(t.Context(), "quic://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	defer l.Close()
	_, err = wire.ListenerFile(l)
	require.ErrorIs(t, err, errors.ErrUnsupported)
}
