//go:build !js

package wswire_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wswire"
	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"
)

// acceptor collects the wires of a Handler.
type acceptor chan wire.Wire

func (a acceptor) Accept(_ context.Context, w wire.Wire) (struct{}, error) {
	a <- w
	return struct{}{}, nil
}

// serve returns the URL of a server with a Handler at /rpc, and the wires of the Handler.
func serve(t *testing.T, opts ...wswire.Option) (url string, wires acceptor) {
	wires = make(acceptor, 1)
	return serveHTTP(t, wswire.Handler(wires, opts...)), wires
}

func serveHTTP(t *testing.T, h http.Handler) (url string) {
	mux := http.NewServeMux()
	mux.Handle("/rpc", h)
	mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "well") })
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return "ws" + strings.TrimPrefix(s.URL, "http") + "/rpc"
}

// page connects with another implementation of WebSocket.
func pageWire(t *testing.T, url string) *websocket.Conn {
	c, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: []string{wswire.Subprotocol}})
	require.NoError(t, err)
	t.Cleanup(func() { c.CloseNow() })
	return c
}

// rawUpgrade returns a connection that was upgraded to a WebSocket, for arbitrary bytes.
func rawUpgrade(t *testing.T, url string) net.Conn {
	host := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/rpc")
	c, err := net.Dial("tcp", host)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	_, err = io.WriteString(c, "GET /rpc HTTP/1.1\r\nHost: "+host+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: asterisque.1\r\n\r\n")
	require.NoError(t, err)
	var head []byte
	for b := make([]byte, 1); !bytes.HasSuffix(head, []byte("\r\n\r\n")); head = append(head, b...) {
		_, err := io.ReadFull(c, b)
		require.NoError(t, err)
	}
	require.Contains(t, string(head), "HTTP/1.1 101")
	return c
}

// lines receives log lines.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(p)
	return len(p), nil
}

// socketWire accepts no Wire.
type socketWire struct{}

func (socketWire) Accept(_ context.Context, w wire.Wire) (any, error) {
	w.Close()
	return nil, errors.New("not today")
}
