package smuxwire_test

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	_ "github.com/asterisque-go/asterisque/wire/smuxwire"
)

func TestMain(m *testing.M) {
	// the tests provoke log lines
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil)))
	leak.Main(m)
}

// listen listens until t ends.
func listen(t testing.TB, url string, o wire.Options) wire.Listener {
	t.Helper()
	l, err := wire.Listen(context.Background(), url, o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// connect dials l and returns both ends, which are closed when t ends.
func connect(t testing.TB, l wire.Listener, o wire.Options) (dialled, accepted wire.Wire) {
	t.Helper()
	accepts := make(chan error, 1)
	go func() { // ends with the Wire; nothing is taken before there is an Accept
		var err error
		accepted, err = l.Accept()
		accepts <- err
	}()
	dialled, err := wire.Dial(context.Background(), l.URL(), o)
	require.NoError(t, err)
	t.Cleanup(func() { dialled.Close() })
	require.NoError(t, <-accepts)
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}

// tlsOptions returns the Options of a server and of the only client that trusts the server.
func tlsOptions(t testing.TB) (server, client wire.Options) {
	t.Helper()
	s, c := testtls.Configs(t)
	return wire.Options{TLS: s}, wire.Options{TLS: c}
}

// deadliner is a Wire with the deadlines of a net.Conn.
type deadliner interface {
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}
