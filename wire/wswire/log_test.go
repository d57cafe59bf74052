package wswire_test

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// serverLines is where a log goes.
type serverLines struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (l *serverLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *serverLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestWhatTheServerLogsIsOfOneKind fails TLS from several ports, each of which stands in the text.
func TestWhatTheServerLogsIsOfOneKind(t *testing.T) {
	log := new(serverLines)
	server, _ := testtls.Configs(t)
	node := asterisque.NewNode(asterisque.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	t.Cleanup(func() { node.Close() })
	ln, err := wire.Listen(t.Context(), "wss://127.0.0.1:0/rpc", wire.Options{TLS: server})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- node.Serve(t.Context(), ln) }()
	for range 3 {
		c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(ln.URL(), "wss://"), "/rpc"))
		require.NoError(t, err)
		c.Write([]byte("GET / HTTP/1.0\r\n\r\n"))
		c.Close()
	}
	require.Eventually(t, func() bool {
		return strings.Count(log.String(), `msg="HTTP server" error="http: TLS handshake error`) == 3
	}, 10*time.Second, time.Millisecond, "%s", log)
	node.Close()
	require.NoError(t, <-served)
}
