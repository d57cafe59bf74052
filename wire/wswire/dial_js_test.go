package wswire_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

// These tests run in WebAssembly. TestProgram_InWebAssembly starts them, and is their server.

func TestMain(m *testing.M) { leak.Main(m) }

// at returns the URL of a route of the server.
func at(t *testing.T, path string) string {
	server := os.Getenv("WSWIRE_SERVER")
	if server == "" {
		t.Skip("TestProgram_InWebAssembly starts these tests, and is their server")
	}
	return server + path
}

// limited returns a context that ends before the timeout of the test.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func dialled(t *testing.T, path string) wire.Wire {
	w, err := wswire.Dial(limited(t), at(t, path))
	require.NoError(t, err)
	t.Cleanup(func() { w.Close() })
	return w
}

// A session calls, and is called.
func TestSession_InWebAssembly(t *testing.T) {
	ctx := limited(t)
	svc := asterisque.NewService()
	asterisque.Func[string, string](11, "surround").Handle(svc, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	node := asterisque.NewNode(asterisque.WithService(svc))
	defer node.Close()
	sess, err := node.Dial(ctx, at(t, "/node"))
	require.NoError(t, err)

	message, err := asterisque.Func[string, string](10, "greet").Call(ctx, sess, "asterisk")
	require.NoError(t, err)
	require.Equal(t, "hello, *asterisk*", message)

	sent := bytes.Repeat([]byte("asterisk"), 1<<17) // 1 MiB
	for range 5 {
		got, err := asterisque.Func[[]byte, []byte](12, "echo").Call(ctx, sess, sent)
		require.NoError(t, err)
		require.True(t, bytes.Equal(sent, got))
	}

	p, err := asterisque.Stream[int, int, int, int](13, "double").Open(ctx, sess, 1000)
	require.NoError(t, err)
	for i := range 1000 {
		require.NoError(t, p.Send(ctx, i))
		v, err := p.Recv(ctx)
		require.NoError(t, err)
		require.Equal(t, 2*i, v)
	}
	n, err := p.Result(ctx)
	require.NoError(t, err)
	require.Equal(t, 1000, n)
	require.NoError(t, node.Shutdown(ctx))
}

// A Wire reads all frames before the end.
func TestReadAll_InWebAssembly(t *testing.T) {
	w := dialled(t, "/end")
	for _, want := range []string{"", "last"} {
		frame, err := w.ReadFrame(1000)
		require.NoError(t, err)
		require.Equal(t, want, string(frame))
	}
	for range 2 {
		_, err := w.ReadFrame(1000)
		require.Equal(t, io.EOF, err)
	}
	require.Error(t, w.WriteFrames([][]byte{{1}}), "the peer is gone")
}

// A Wire detects a cut.
func TestCut_InWebAssembly(t *testing.T) {
	_, err := dialled(t, "/cut").ReadFrame(1000)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

// A Wire refuses a message that is no frame.
func TestNoFrame_InWebAssembly(t *testing.T) {
	_, err := dialled(t, "/text").ReadFrame(1000)
	require.ErrorContains(t, err, "text message")
	_, err = dialled(t, "/large").ReadFrame(1000)
	require.ErrorIs(t, err, wire.ErrFrameTooLarge)
}

// Close ends a waiting reader.
func TestClose_InWebAssembly(t *testing.T) {
	w := dialled(t, "/node")
	read := make(chan error, 1)
	go func() { // until Close
		_, err := w.ReadFrame(1000)
		read <- err
	}()
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	require.ErrorIs(t, <-read, net.ErrClosed)
	require.ErrorIs(t, w.WriteFrames([][]byte{{1}}), net.ErrClosed)
}

// A writer gets an error when its peer is gone.
func TestWrite_InWebAssembly(t *testing.T) {
	w := dialled(t, "/large") // which reads one frame, and that is too large for it
	var err error
	for range 100 {
		if err = w.WriteFrames([][]byte{make([]byte, 1<<20)}); err != nil {
			break
		}
	}
	require.Error(t, err, "the peer is gone before all that was written")
}

// Dial returns an error for unsupported options.
func TestDial_InWebAssembly(t *testing.T) {
	url := at(t, "/node")
	_, err := wswire.Dial(limited(t), url, wswire.WithHeader(http.Header{"Origin": {"x"}}))
	require.ErrorContains(t, err, "headers")
	_, err = wswire.Dial(limited(t), at(t, "/nowhere"))
	require.ErrorContains(t, err, "did not open a WebSocket")
	_, err = wswire.Dial(limited(t), "http://127.0.0.1")
	require.ErrorIs(t, err, wire.ErrURL)
	_, err = wire.Listen(limited(t), "ws://127.0.0.1:0/rpc", wire.Options{})
	require.ErrorContains(t, err, "cannot listen")
}
