package tunnel_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/rpc"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/tunnel"
)

// TestConn_HTTP makes many concurrent requests through one session, which the serving side has
// dialled: with keep-alive connections, and with HTTP/2 over TLS.
func TestConn_HTTP(t *testing.T) {
	server, client := testtls.Configs(t)
	for _, c := range []struct {
		scheme, proto string
		listen        func(net.Listener) net.Listener
	}{
		{"http", "HTTP/1.1", func(ln net.Listener) net.Listener { return ln }},
		{"https", "HTTP/2.0", func(ln net.Listener) net.Listener {
			config := server.Clone()
			config.NextProtos = []string{"h2"}
			return tls.NewListener(ln, config)
		}},
	} {
		t.Run(c.proto, func(t *testing.T) {
			svc := asterisque.NewService()
			ln := c.listen(tunnel.Listen(svc, number, "web"))
			served := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				content, _ := io.ReadAll(r.Body)
				w.Write(content)
			})}
			behind, public := asterisque.NewNode(asterisque.WithService(svc)), asterisque.NewNode()
			t.Cleanup(func() { behind.Close(); public.Close() })
			_, toBehind := joined(t, behind, public)
			var serving, all sync.WaitGroup
			serving.Go(func() { served.Serve(ln) })

			transport := &http.Transport{TLSClientConfig: client, ForceAttemptHTTP2: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return tunnel.Dial(ctx, toBehind, number)
			}}
			web := http.Client{Transport: transport}
			for i := range 40 {
				all.Go(func() {
					content := bytes.Repeat([]byte{byte(i)}, 1+i*10_000)
					answer, err := web.Post(c.scheme+"://127.0.0.1/", "", bytes.NewReader(content))
					if err != nil {
						t.Error(err)
						return
					}
					defer answer.Body.Close()
					got, err := io.ReadAll(answer.Body)
					if err != nil || !bytes.Equal(content, got) || answer.Proto != c.proto {
						t.Errorf("%d of %d bytes over %s: %v", len(got), len(content), answer.Proto, err)
					}
				})
			}
			all.Wait()
			transport.CloseIdleConnections()
			served.Close()
			serving.Wait()
		})
	}
}

// Doubler is a service of package net/rpc.
type Doubler struct{}

// Double returns two times n in twice.
func (Doubler) Double(n int, twice *int) error { *twice = 2 * n; return nil }

// net/rpc runs through a session.
func TestConn_NetRPC(t *testing.T) {
	svc := asterisque.NewService()
	ln := tunnel.Listen(svc, number, "rpc")
	s, _ := overTCP(t, svc)
	server := rpc.NewServer()
	require.NoError(t, server.Register(Doubler{}))
	var all sync.WaitGroup
	all.Go(func() { server.ServeConn(accept(t, ln)) })
	c, err := tunnel.Dial(background, s, number)
	require.NoError(t, err)
	client := rpc.NewClient(c)
	for i := range 100 {
		var twice int
		require.NoError(t, client.Call("Doubler.Double", i, &twice))
		require.Equal(t, 2*i, twice)
	}
	require.NoError(t, client.Close())
	all.Wait()
}

// TestConn_OtherWire cuts the Wire of a resumable session: the connection continues.
func TestConn_OtherWire(t *testing.T) {
	svc := asterisque.NewService()
	ln := tunnel.Listen(svc, number, "test")
	resume := asterisque.WithResume(asterisque.Resume{For: time.Minute})
	here, there := asterisque.NewNode(silent, resume), asterisque.NewNode(silent, resume, asterisque.WithService(svc))
	t.Cleanup(func() { here.Close(); there.Close() })
	cuts := make(chan func() error, 10)
	conn, err := here.Connect(background, "", asterisque.ReconnectConfig{Dial: cutInMemory(there, cuts)})
	require.NoError(t, err)
	a := dial(t, conn, "")
	go func() {
		for i := range 1000 {
			fmt.Fprintf(a, "%3d ", i)
			if i%400 == 399 {
				(<-cuts)()
			}
		}
		a.Close()
	}()
	got, err := io.ReadAll(accept(t, ln))
	require.NoError(t, err)
	var want bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&want, "%3d ", i)
	}
	require.Equal(t, want.String(), string(got))
	require.Len(t, cuts, 1, "this is the third wire")
}
