package quicwire

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
)

// Both sides agree on the protocol, and report it.
func TestTLS_Protocol(t *testing.T) {
	server, client := testtls.Configs(t)
	here, there := connect(t, listenFor(t, server), client)
	for _, w := range []wire.Wire{here, there} {
		state := w.(wire.Secure).ConnectionState()
		require.True(t, state.HandshakeComplete)
		require.EqualValues(t, tls.VersionTLS13, state.Version)
		require.Equal(t, "asterisque/1", state.NegotiatedProtocol)
	}
	require.Empty(t, server.NextProtos, "the given config is not changed")
	require.Empty(t, client.NextProtos)
}

// The listener sees the certificate of its client.
func TestTLS_ClientCertificate(t *testing.T) {
	a := testtls.NewAuthority(t)
	cert := a.Issue("both sides", time.Hour)
	server := &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}
	here, there := connect(t, listenFor(t, server), a.Client(cert))
	certs := there.(wire.Secure).ConnectionState().PeerCertificates
	require.Len(t, certs, 1)
	require.Equal(t, cert.Certificate[0], certs[0].Raw)
	require.Equal(t, cert.Certificate[0], here.(wire.Secure).ConnectionState().PeerCertificates[0].Raw)
}

// A config chosen for each client needs no protocol.
func TestTLS_ConfigPerClient(t *testing.T) {
	server, client := testtls.Configs(t)
	choosing := &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return server, nil }}
	here, _ := connect(t, listenFor(t, choosing), client)
	require.Equal(t, "asterisque/1", here.(wire.Secure).ConnectionState().NegotiatedProtocol)
	require.Empty(t, server.NextProtos, "the given config is not changed")
}

// Both sides return the reason of a failed handshake.
func TestTLS_FailedHandshake(t *testing.T) {
	a, stranger := testtls.NewAuthority(t), testtls.NewAuthority(t)
	good := &tls.Config{Certificates: []tls.Certificate{a.Issue("good", time.Hour)}}
	careful := &tls.Config{Certificates: good.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool()}
	for _, c := range []struct {
		name           string
		server, client *tls.Config
		here, there    string // what each side says
	}{
		{"another protocol", good, &tls.Config{RootCAs: a.Pool(), NextProtos: []string{"h3"}}, "no application protocol", `unsupported application protocols (["h3"])`},
		{"a listener of another protocol", &tls.Config{Certificates: good.Certificates, NextProtos: []string{"h3"}}, a.Client(), "no application protocol", `unsupported application protocols (["asterisque/1"])`},
		{"a listener whose certificate is unknown", good, nil, "unknown authority", "bad certificate"},
		{"a listener whose certificate has expired", &tls.Config{Certificates: []tls.Certificate{a.Issue("late", -time.Hour)}}, a.Client(), "expired", "bad certificate"},
		{"a listener with another name", good, &tls.Config{RootCAs: a.Pool(), ServerName: "example.org"}, "example.org", "bad certificate"},
		{"no client certificate", careful, a.Client(), "certificate required", "didn't provide a certificate"},
		{"an unknown client certificate", careful, a.Client(stranger.Issue("good", time.Hour)), "certificate", "unknown authority"},
		{"an expired client certificate", careful, a.Client(a.Issue("late", -time.Hour)), "expired", "expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := listenFor(t, c.server)
			here := useOnce(l.URL(), c.client)
			require.ErrorContains(t, here, c.here)
			require.False(t, isTimeout(here), "no side waits for a timeout")
			there, err := l.Accept()
			require.NoError(t, err, "Accept continues")
			defer there.Close()
			_, err = there.ReadFrame(100)
			require.ErrorContains(t, err, "wire: read: ")
			require.ErrorContains(t, err, c.there)
			require.False(t, isTimeout(err), "no side waits for a timeout")
			require.Error(t, there.WriteFrames([][]byte{nil}))
			require.Contains(t, there.RemoteAddr().String(), "127.0.0.1:")
		})
	}
}

// useOnce returns the error of dialling or of the first use: only then does a client learn that the
// listener rejects its certificate.
func useOnce(url string, client *tls.Config) error {
	w, err := wire.Dial(background, url, wire.Options{TLS: client})
	if err != nil {
		return err
	}
	defer w.Close()
	w.WriteFrames([][]byte{nil})
	_, err = w.ReadFrame(100)
	return err
}

// An unknown certificate can be distinguished from other errors.
func TestTLS_UnknownCertificate(t *testing.T) {
	server, _ := testtls.Configs(t)
	_, err := wire.Dial(t.Context(), listenFor(t, server).URL(), wire.Options{})
	unknown := x509.UnknownAuthorityError{}
	require.ErrorAs(t, err, &unknown)
	require.NotErrorIs(t, err, net.ErrClosed, "this side has closed nothing")
}

func TestListen_NoCertificate(t *testing.T) {
	_, err := wire.Listen(t.Context(), "quic://127.0.0.1:0", wire.Options{})
	require.ErrorContains(t, err, "Options.TLS.Certificates")
}

// A failed handshake affects no other connection.
func TestTLS_FailureHurtsNoOther(t *testing.T) {
	server, client := testtls.Configs(t)
	l := listenFor(t, server)
	for range 50 { // more than the listener keeps for Accept
		require.Error(t, useOnce(l.URL(), nil))
	}
	here, err := wire.Dial(t.Context(), l.URL(), wire.Options{TLS: client})
	require.NoError(t, err)
	defer here.Close()
	require.NoError(t, here.WriteFrames([][]byte{nil}))
	for {
		there, err := l.Accept()
		require.NoError(t, err)
		_, err = there.ReadFrame(100)
		there.Close()
		if err == nil {
			break
		}
	}
	_, err = here.ReadFrame(100)
	require.Equal(t, io.EOF, err)
}

// A port without QUIC is an error within the timeout.
func TestDial_NoQUIC(t *testing.T) {
	t.Parallel() // it waits
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	_, err = wire.Dial(t.Context(), "quic://"+silent.LocalAddr().String(), wire.Options{})
	require.ErrorContains(t, err, "no answer within 5s")
	require.NotErrorIs(t, err, net.ErrClosed)
}
