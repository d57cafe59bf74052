//go:build !js

package wswire_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

// TestProgram_InWebAssembly runs the tests of dial_js_test.go in Node.js, against a server in this
// process.
func TestProgram_InWebAssembly(t *testing.T) {
	options := nodeOptions(t)
	server := httptest.NewServer(routes(t))
	t.Cleanup(server.Close)
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // most of it to compile
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-timeout=4m",
		"-exec", filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/go_js_wasm_exec"), ".")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0",
		"NODE_OPTIONS="+options, "WSWIRE_SERVER=ws"+strings.TrimPrefix(server.URL, "http"))
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.NotContains(t, string(said), "SKIP")
	require.Equal(t, 7, bytes.Count(said, []byte("\n--- PASS: ")), "%s", said)
}

// nodeOptions returns the options with which Node.js has a WebSocket, and skips the test without
// Node.js.
func nodeOptions(t *testing.T) string {
	for _, options := range []string{"", "--experimental-websocket"} {
		cmd := exec.Command("node", "-p", "typeof WebSocket")
		cmd.Env = append(os.Environ(), "NODE_OPTIONS="+options)
		if out, err := cmd.Output(); err == nil && strings.TrimSpace(string(out)) == "function" {
			return options
		}
	}
	t.Skip("it needs Node.js 20 or newer, as \"node\" in the path")
	return ""
}

// routes returns a server for each test in WebAssembly.
func routes(t *testing.T) http.Handler {
	mux := http.NewServeMux()
	svc := asterisque.NewService()
	asterisque.Func[string, string](10, "greet").Handle(svc, func(ctx context.Context, name string) (string, error) {
		star, err := asterisque.Func[string, string](11, "surround").Call(ctx, asterisque.SessionOf(ctx), name)
		return "hello, " + star, err
	})
	asterisque.Func[[]byte, []byte](12, "echo").Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
	asterisque.Stream[int, int, int, int](13, "double").Handle(svc, func(ctx context.Context, n int, p *asterisque.Pipe[int, int]) (int, error) {
		for i := range n {
			v, err := p.Recv(ctx)
			if err != nil {
				return i, err
			}
			if err := p.Send(ctx, 2*v); err != nil {
				return i, err
			}
		}
		return n, nil
	})
	node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	t.Cleanup(func() { node.Close() })
	mux.Handle("/node", wswire.Handler(node))
	for path, serve := range map[string]func(w wire.Wire){
		"/end":   func(w wire.Wire) { w.WriteFrames([][]byte{{}, []byte("last")}); w.Close() },
		"/large": func(w wire.Wire) { w.WriteFrames([][]byte{make([]byte, 1001)}); w.ReadFrame(1); w.Close() },
	} {
		mux.Handle(path, wswire.Handler(serving(serve)))
	}
	mux.HandleFunc("/text", func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{wswire.Subprotocol}}); err == nil {
			ws.Write(r.Context(), websocket.MessageText, []byte("text"))
			ws.Read(r.Context())
		}
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		if ws, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{wswire.Subprotocol}}); err == nil {
			ws.CloseNow()
		}
	})
	return mux
}

// serving serves each Wire by a function.
type serving func(w wire.Wire)

// Accept implements wswire.Acceptor.
func (a serving) Accept(_ context.Context, w wire.Wire) (bool, error) {
	a(w)
	return true, nil
}
