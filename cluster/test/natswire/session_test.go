package natswire_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

var echo = asterisque.Func[string, string](10, "echo")

// service returns a service with an echo.
func service() *asterisque.Service {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	return svc
}

// nodeFor returns a node that is closed when t ends.
func nodeFor(t testing.TB, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}

// Each side sees the certificate of the other through NATS.
func TestTLS_Certificates(t *testing.T) {
	s := broker(t)
	a := testtls.NewAuthority(t)
	cert := a.Issue("both sides", time.Hour)
	serverTLS := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}
	seen := make(chan asterisque.Peer, 1)
	there := nodeFor(t, asterisque.WithService(service()), asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		seen <- p
		return nil, nil
	}}))
	here, stranger := nodeFor(t, asterisque.WithTLS(a.Client(cert))), nodeFor(t, asterisque.WithTLS(a.Client()))
	l, err := wire.Listen(background, secretURL(s)+"/localhost", wire.Options{TLS: serverTLS})
	require.NoError(t, err)
	require.True(t, l.(wire.Private).Private())
	go there.Serve(background, l) // ends with the node

	_, err = stranger.Dial(background, l.URL())
	require.ErrorIs(t, err, asterisque.ErrHandshake)
	w, err := wire.Dial(t.Context(), l.URL(), wire.Options{TLS: a.Client()})
	require.NoError(t, err, "a TLS 1.3 client begins before the listener has seen its certificate")
	defer w.Close()
	require.ErrorContains(t, readError(w), "certificate required")

	sess, err := here.Dial(background, l.URL())
	require.NoError(t, err)
	got, err := echo.Call(background, sess, "sealed")
	require.NoError(t, err)
	require.Equal(t, "sealed", got)
	for _, state := range []*tls.ConnectionState{(<-seen).TLS, sess.Peer().TLS} {
		require.Equal(t, cert.Certificate[0], state.PeerCertificates[0].Raw)
		require.Equal(t, "asterisque/1", state.NegotiatedProtocol)
	}
}

// The certificate of a listener has to be for its name.
func TestTLS_CertificateName(t *testing.T) {
	s := broker(t)
	serverTLS, clientTLS := testtls.Configs(t)
	there := nodeFor(t, asterisque.WithService(service()), asterisque.WithTLS(serverTLS))
	go there.ListenAndServe(background, secretURL(s)+"/orders") // ends with the node
	dial := func(c *tls.Config) (err error) {
		require.Eventually(t, func() bool {
			var w wire.Wire
			if w, err = wire.Dial(t.Context(), secretURL(s)+"/orders", wire.Options{TLS: c}); err == nil {
				w.Close()
			}
			return err == nil || !strings.Contains(err.Error(), "no listener")
		}, hangs, 1)
		return err
	}
	require.ErrorContains(t, dial(clientTLS), "not orders")
	named := clientTLS.Clone()
	named.ServerName = "localhost"
	require.NoError(t, dial(named))
}

// NATS can read nothing of a Wire with TLS.
func TestTLS_HiddenFromNATS(t *testing.T) {
	s := broker(t)
	serverTLS, clientTLS := testtls.Configs(t)
	spy := connectTo(t, s)
	heard, err := spy.SubscribeSync(">")
	require.NoError(t, err)
	require.NoError(t, spy.Flush())
	const text = "what nobody else may know"
	named := clientTLS.Clone()
	named.ServerName = "localhost"
	for url, readable := range map[string]bool{s.ClientURL() + "/plain": true, secretURL(s) + "/secret": false} {
		here, there := pairAt(t, listenAt(t, url, wire.Options{TLS: serverTLS}), wire.Options{TLS: named})
		carries(t, here, there, text)
		require.NoError(t, spy.Flush())
		found := false
		for n, _, _ := heard.Pending(); n > 0; n, _, _ = heard.Pending() {
			m, err := heard.NextMsg(hangs)
			require.NoError(t, err)
			found = found || strings.Contains(string(m.Data), text)
		}
		require.Equal(t, readable, found, url)
	}
}

// Listeners at one name share the wires.
func TestListener_Several(t *testing.T) {
	s := broker(t)
	served := map[string]int{}
	var mu sync.Mutex // guards served
	who := asterisque.Func[struct{}, string](11, "who")
	for i := range 3 {
		svc, name := asterisque.NewService(), fmt.Sprint("node ", i)
		who.Handle(svc, func(context.Context, struct{}) (string, error) { return name, nil })
		n := nodeFor(t, asterisque.WithService(svc))
		l, err := wire.Listen(background, s.ClientURL()+"/who", wire.Options{})
		require.NoError(t, err)
		go n.Serve(background, l) // ends with the node
	}
	here := nodeFor(t)
	require.Eventually(t, func() bool {
		sess, err := here.Dial(background, s.ClientURL()+"/who")
		require.NoError(t, err)
		defer sess.Close()
		name, err := who.Call(background, sess, struct{}{})
		require.NoError(t, err)
		mu.Lock()
		defer mu.Unlock()
		served[name]++
		return len(served) == 3
	}, hangs, 1, "NATS draws one of them for each")
}

// A session continues when the server is restarted.
func TestSession_ServerRestarted(t *testing.T) {
	s := broker(t)
	url := s.ClientURL() + "/name"
	resume := asterisque.WithResume(asterisque.Resume{For: time.Minute})
	// Permits the secret of a resume over a plain connection.
	plain := asterisque.WithAccess(asterisque.Access{PlainCredentials: true})
	there := nodeFor(t, asterisque.WithService(service()), resume, plain)
	l, err := natswire.Transport{Options: []nats.Option{nats.ReconnectWait(time.Millisecond)}}.Listen(background, parsed(t, url), wire.Options{})
	require.NoError(t, err)
	go there.Serve(background, l) // ends with the node
	here := nodeFor(t, resume, plain)
	conn, err := here.Connect(background, url, asterisque.ReconnectConfig{First: time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	call := func(text string) {
		got, err := echo.Call(background, conn, text)
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
	call("before")
	sess := conn.Session()
	broker(t, restart(s))
	call("after")
	require.Same(t, sess, conn.Session(), "it is the same session, over another Wire")
	require.NoError(t, sess.Err())
}
