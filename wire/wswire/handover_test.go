//go:build !js

package wswire_test

import (
	"errors"
	"net"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

func TestHandover_HTTPServer(t *testing.T) {
	first := listen(t, "ws://127.0.0.1:0/rpc", wire.Options{})
	file, err := wire.ListenerFile(first)
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	require.NoError(t, first.Close())

	ln, err := net.FileListener(file) // as of wire.InheritedFile
	require.NoError(t, err)
	require.NoError(t, file.Close())
	wires, mux := make(acceptor, 1), http.NewServeMux()
	mux.Handle("/rpc", wswire.Handler(wires))
	server := &http.Server{Handler: mux}
	go server.Serve(ln) // ends with Close
	defer server.Close()
	w, err := wire.Dial(t.Context(), first.URL(), wire.Options{})
	require.NoError(t, err)
	defer w.Close()
	other := <-wires
	defer other.Close()
	require.NoError(t, w.WriteFrames([][]byte{[]byte("hello")}))
	frame, err := other.ReadFrame(5)
	require.NoError(t, err)
	require.Equal(t, "hello", string(frame))

	_, err = wire.ListenerFile(first)
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestReusePort_Two(t *testing.T) {
	first, err := wire.Listen(t.Context(), "ws://127.0.0.1:0/rpc", wire.Options{ReusePort: true})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer first.Close()
	second := listen(t, first.URL(), wire.Options{ReusePort: true})
	require.NoError(t, first.Close())
	connect(t, second, wire.Options{})
}
