package natswire_test

import (
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// A transport over a connection needs no host.
func TestTransport_NoHost(t *testing.T) {
	s := broker(t)
	serverTLS, clientTLS := testtls.Configs(t)
	for _, over := range []natswire.Transport{{Conn: connectTo(t, s)}, {Conn: connectTo(t, s), TLS: true}} {
		u := parsed(t, "any:///localhost")
		ln, err := over.Listen(t.Context(), u, wire.Options{TLS: serverTLS})
		require.NoError(t, err)
		listening(t, ln)
		require.Equal(t, u.String(), ln.URL())
		go func() { // ends with the listener
			w, err := ln.Accept()
			if err == nil {
				w.ReadFrame(most)
				w.Close()
			}
		}()
		w, err := over.Dial(t.Context(), u, wire.Options{TLS: clientTLS})
		require.NoError(t, err)
		_, secure := w.(wire.Secure)
		require.Equal(t, over.TLS, secure)
		require.NoError(t, w.Close())
		require.NoError(t, ln.Close())
		require.False(t, over.Conn.IsClosed(), "it stays the user's")
	}
}

// Credentials are those of package nats.
func TestTransport_Credentials(t *testing.T) {
	key, err := nkeys.CreateUser()
	require.NoError(t, err)
	public, err := key.PublicKey()
	require.NoError(t, err)
	byUser := broker(t, users(&server.User{Username: "me", Password: "secret"}))
	byToken := broker(t, func(o *server.Options) { o.Authorization = "t0ken" })
	byKey := broker(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	for name, c := range map[string]struct {
		server *server.Server
		user   string // of the URL
		option nats.Option
	}{
		"user by URL":     {byUser, "me:secret@", nil},
		"user by option":  {byUser, "", nats.UserInfo("me", "secret")},
		"token by URL":    {byToken, "t0ken@", nil},
		"token by option": {byToken, "", nats.Token("t0ken")},
		"nkey by option":  {byKey, "", nats.Nkey(public, key.Sign)},
	} {
		t.Run(name, func(t *testing.T) {
			var transport natswire.Transport
			if c.option != nil {
				transport.Options = []nats.Option{c.option}
			}
			u := parsed(t, strings.Replace(c.server.ClientURL(), "//", "//"+c.user, 1)+"/name")
			ln, err := transport.Listen(t.Context(), u, wire.Options{})
			require.NoError(t, err)
			listening(t, ln)
			here, err := transport.Dial(t.Context(), u, wire.Options{})
			require.NoError(t, err)
			defer here.Close()
			there, err := ln.Accept()
			require.NoError(t, err)
			defer there.Close()
			carries(t, here, there, name)
		})
	}
}

// A server with TLS is reached by options.
func TestTransport_ServerTLS(t *testing.T) {
	serverTLS, clientTLS := testtls.Configs(t)
	s := broker(t, func(o *server.Options) { o.TLSConfig, o.TLS, o.TLSTimeout = serverTLS, true, hangs.Seconds() })
	u := parsed(t, strings.Replace(s.ClientURL(), "tls:", "nats:", 1)+"/name")
	_, err := natswire.Transport{}.Dial(t.Context(), u, wire.Options{})
	require.ErrorContains(t, err, "certificate")
	over := natswire.Transport{Options: []nats.Option{nats.Secure(clientTLS)}}
	_, err = over.Dial(t.Context(), u, wire.Options{})
	require.ErrorIs(t, err, natswire.ErrNobody)
}
