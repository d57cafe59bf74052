package wire_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

func TestMain(m *testing.M) {
	if names, ok := os.LookupEnv(inheritor); ok {
		inherit(strings.Split(names, ":"))
	}
	if os.Getenv(contender) != "" {
		contend()
	}
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
	type result struct {
		w   wire.Wire
		err error
	}
	accept := make(chan result, 1)
	go func() {
		w, err := l.Accept()
		if err == nil {
			// A TLS handshake needs both sides; this side performs it with its first frame.
			_, err = w.ReadFrame(0)
		}
		accept <- result{w, err}
	}()
	dialled, err := wire.Dial(context.Background(), l.URL(), o)
	require.NoError(t, err)
	require.NoError(t, dialled.WriteFrames([][]byte{{}}))
	r := <-accept
	require.NoError(t, r.err)
	t.Cleanup(func() {
		dialled.Close()
		r.w.Close()
	})
	return dialled, r.w
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
