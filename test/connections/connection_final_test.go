package connections

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	_ "github.com/asterisque-go/asterisque/wire/classicwire" // for classic://
)

// dialFunc is a ReconnectConfig.Dial.
type dialFunc = func(context.Context) (wire.Wire, error)

// dialling returns a dialFunc that dials a URL.
func dialling(url string, cfg *tls.Config) dialFunc {
	return func(ctx context.Context) (wire.Wire, error) { return wire.Dial(ctx, url, wire.Options{TLS: cfg}) }
}

// listenRaw returns the address of a TCP server that runs answer on each connection.
func listenRaw(t *testing.T, answer func(net.Conn)) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with ln
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			answer(c)
			c.Close()
		}
	}()
	return ln.Addr().String()
}

// says returns an answer that writes bytes. It then waits until the client has closed, so that no
// TCP reset overtakes the bytes.
func says(bytes string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, bytes)
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	}
}

// resets is an answer that resets the connection after the first bytes of the client.
func resets(c net.Conn) {
	c.Read(make([]byte, 1))
	c.(*net.TCPConn).SetLinger(0)
}

// afterFailing returns the error of an attempt by dial, and reports whether the error ended the
// connection. If not, the next attempts reach a running node, and a call succeeds.
func afterFailing(t *testing.T, dial dialFunc, codecs ...codec.Values) (why error, final bool) {
	t.Helper()
	if codecs == nil {
		codecs = []codec.Values{codec.CBOR}
	}
	here, there := testkit.NewNode(t, asterisque.WithCodecs(codecs...)), testkit.NewNode(t, asterisque.WithCodecs(codecs...), asterisque.WithService(testkit.EchoService()))
	serving := dialling(testkit.Serve(t, there), nil)
	again, mended := make(chan struct{}, 1), make(chan struct{})
	dials := 0
	conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{
		First: time.Millisecond, Most: 10 * time.Millisecond, Background: true,
		Dial: func(ctx context.Context) (wire.Wire, error) {
			if dials++; dials == 1 {
				return dial(ctx)
			}
			again <- struct{}{}
			select {
			case <-mended:
				return serving(ctx)
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	select {
	case <-conn.Done():
		require.Equal(t, asterisque.Lost, conn.State())
		return conn.Err(), true
	case <-again:
	case <-time.After(testkit.Patience):
		require.Fail(t, "the connection neither ends nor tries again")
	}
	why = conn.Outage().Why
	close(mended)
	_, err = testkit.Echo.Call(testkit.Background, conn, "")
	require.NoError(t, err)
	return why, false
}

// alerts are the alerts of RFC 8446, section 6, each with the text of the error of an attempt.
var alerts = []struct {
	number byte
	name   string
	want   string
}{
	{0, "close_notify", "the peer closed the connection during the TLS handshake"},
	{10, "unexpected_message", "remote error: tls: unexpected message"},
	{20, "bad_record_mac", "remote error: tls: bad record MAC"},
	{22, "record_overflow", "remote error: tls: record overflow"},
	{40, "handshake_failure", "remote error: tls: handshake failure"},
	{42, "bad_certificate", "remote error: tls: bad certificate"},
	{43, "unsupported_certificate", "remote error: tls: unsupported certificate"},
	{44, "certificate_revoked", "remote error: tls: revoked certificate"},
	{45, "certificate_expired", "remote error: tls: expired certificate"},
	{46, "certificate_unknown", "remote error: tls: unknown certificate"},
	{47, "illegal_parameter", "remote error: tls: illegal parameter"},
	{48, "unknown_ca", "remote error: tls: unknown certificate authority"},
	{49, "access_denied", "remote error: tls: access denied"},
	{50, "decode_error", "remote error: tls: error decoding message"},
	{51, "decrypt_error", "remote error: tls: error decrypting message"},
	{70, "protocol_version", "remote error: tls: protocol version not supported"},
	{71, "insufficient_security", "remote error: tls: insufficient security level"},
	{80, "internal_error", "remote error: tls: internal error"},
	{86, "inappropriate_fallback", "remote error: tls: inappropriate fallback"},
	{90, "user_canceled", "remote error: tls: user canceled"},
	{109, "missing_extension", "remote error: tls: missing extension"},
	{110, "unsupported_extension", "remote error: tls: unsupported extension"},
	{112, "unrecognized_name", "remote error: tls: unrecognized name"},
	{113, "bad_certificate_status_response", "remote error: tls: bad certificate status response"},
	{115, "unknown_psk_identity", "remote error: tls: unknown PSK identity"},
	{116, "certificate_required", "remote error: tls: certificate required"},
	{120, "no_application_protocol", "remote error: tls: no application protocol"},
}

// record returns the TLS record of a fatal alert.
func record(alert byte) string { return string([]byte{0x15, 3, 3, 0, 2, 2, alert}) }

// TestConnection_NoAlertOfTLSIsFinal: a TLS alert may be temporary.
func TestConnection_NoAlertOfTLSIsFinal(t *testing.T) {
	client := testtls.NewAuthority(t).Client()
	for _, a := range alerts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			url := "tls://" + listenRaw(t, says(record(a.number)))
			why, final := afterFailing(t, dialling(url, client))
			require.ErrorContains(t, why, a.want)
			require.ErrorContains(t, why, url)
			require.False(t, final)
		})
	}
}

func TestConnection_FinalErrors(t *testing.T) {
	ca, other := testtls.NewAuthority(t), testtls.NewAuthority(t)
	early := ca.Client()
	early.Time = func() time.Time { return time.Now().Add(-72 * time.Hour) }
	elsewhere := ca.Client()
	elsewhere.ServerName = "elsewhere.example"
	old, foreign := ca.Client(), ca.Client()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	foreign.NextProtos = []string{"h2"}

	listen := func(cfg *tls.Config, opts ...asterisque.Option) string {
		return testkit.Listen(t, testkit.NewNode(t, opts...), "tls://127.0.0.1:0", wire.Options{TLS: cfg})
	}
	refusing := func(err error) string {
		return testkit.Serve(t, testkit.NewNode(t, asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return nil, err
		}})))
	}
	strict := ca.Server()
	strict.ClientAuth = tls.RequireAndVerifyClientCert
	secure, demanding := listen(ca.Server()), listen(strict)
	expired := listen(&tls.Config{Certificates: []tls.Certificate{ca.Issue("server", -time.Minute)}})
	missing := listen(&tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, testkit.ErrBroken }})
	raw := func(scheme string, answer func(net.Conn)) dialFunc {
		return dialling(scheme+listenRaw(t, answer), ca.Client())
	}
	const busy = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	for _, c := range []struct {
		name  string
		dial  dialFunc
		want  string
		final bool
	}{
		{"the server has no certificate for a moment", dialling(missing, ca.Client()), "remote error: tls: internal error", false},
		{"the server's authority is unknown", dialling(secure, other.Client()), "unknown authority", false},
		{"the server's certificate is for another host", dialling(secure, elsewhere), "not elsewhere.example", false},
		{"the server's certificate has expired", dialling(expired, ca.Client()), "expired", false},
		{"the server's certificate is not valid yet", dialling(secure, early), "is before", false},
		{"a client certificate is missing", dialling(demanding, ca.Client()), "remote error: tls: certificate required", false},
		{"the client's authority is unknown", dialling(demanding, ca.Client(other.Issue("stranger", time.Hour))), "certificate", false},
		{"the client's certificate has expired", dialling(demanding, ca.Client(ca.Issue("late", -time.Minute))), "remote error: tls: expired certificate", false},
		{"another version of TLS", dialling(secure, old), "remote error: tls: protocol version not supported", false},
		{"another protocol within TLS", dialling(secure, foreign), "remote error: tls: no application protocol", false},

		{"a balancer's 503 instead of TLS", raw("tls://", says(busy)), "first record does not look like a TLS handshake", false},
		{"a balancer's 503", raw("tcp://", says(busy)), `the peer says "HTTP/1.1 503 Service Unavailable"`, false},
		{"an SSH server", raw("tcp://", says("SSH-2.0-OpenSSH_9.9\r\n")), `the peer says "SSH-2.0-OpenSSH_9.9"`, false},
		{"an SMTP server", raw("tcp://", says("220 mail.example ESMTP\r\n")), `the peer says "220 mail.example ESMTP"`, false},
		{"something else", raw("tcp://", says("\x00\x00\x00\x01\xff")), "the peer does not speak asterisque", false},

		{"the end during TLS", raw("tls://", says("")), "the peer closed the connection during the TLS handshake", false},
		{"the end", raw("tcp://", says("")), "the peer closed the wire before the handshake was complete", false},
		{"a reset during TLS", raw("tls://", resets), "connection reset", false},
		{"a reset", raw("tcp://", resets), "connection reset", false},
		{"nothing listens", dialling("tls://"+gone.Addr().String(), ca.Client()), "connection refused", false},

		{"the application of the peer is not ready", dialling(refusing(testkit.ErrBroken), nil), "the peer could not be checked", false},
		{"the application of the peer refuses", dialling(refusing(asterisque.ErrUnauthorized.Withf("not you")), nil), "not you", true},
		{"the application of the peer takes other versions", dialling(refusing(asterisque.ErrHandshake.Withf("too old")), nil), "too old", true},
		{"no common codec", dialling(testkit.Serve(t, testkit.NewNode(t, asterisque.WithCodecs(codec.Raw))), nil), "no common value codec", true},
		{"no such scheme", dialling("carrier-pigeon://roof", nil), "carrier-pigeon", true},
		{"no URL", dialling("127.0.0.1:5330", nil), "127.0.0.1:5330", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			why, final := afterFailing(t, c.dial)
			require.ErrorContains(t, why, c.want)
			require.Equal(t, c.final, final, "final: %v", why)
		})
	}
}

// A text other than a classic one is not final.
func TestConnection_ClassicText(t *testing.T) {
	why, final := afterFailing(t, dialling("classic://"+listenRaw(t, says("HTTP/1.1 503 Service Unavailable\r\n\r\n")), nil), classic.MessagePack)
	require.ErrorContains(t, why, "the peer does not speak the classic protocol")
	require.False(t, final)
}

// TestReconnect_TLSAlert cuts a live session while its server has no certificate.
func TestReconnect_TLSAlert(t *testing.T) {
	client := testtls.NewAuthority(t).Client()
	alerting := dialling("tls://"+listenRaw(t, says(record(80))), client)
	cutter := &testkit.Cutter{URL: testkit.Serve(t, testkit.NewNode(t, asterisque.WithService(testkit.EchoService())))}
	dials, down := 0, new(testkit.Journal)
	conn, err := testkit.NewNode(t).Connect(testkit.Background, "", asterisque.ReconnectConfig{
		First: time.Millisecond, Most: 10 * time.Millisecond, OnState: down.Note,
		Dial: func(ctx context.Context) (wire.Wire, error) {
			if dials++; dials > 1 && dials < 8 {
				return alerting(ctx)
			}
			return cutter.Dial(ctx)
		},
	})
	require.NoError(t, err)
	defer conn.Close()
	cutter.Cut()
	testkit.Settled(t, func() bool { return len(down.Read()) == 3 })
	require.Equal(t, []string{"connected", "reconnecting", "connected"}, down.Read())
	_, err = testkit.Echo.Call(testkit.Background, conn, "")
	require.NoError(t, err)
}
