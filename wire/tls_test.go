package wire_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// Both sides agree on the protocol, and report it.
func TestTLS_Protocol(t *testing.T) {
	server, client := tlsOptions(t)
	a, b := connect(t, listen(t, "tls://127.0.0.1:0", server), client)
	for _, w := range []wire.Wire{a, b} {
		state := w.(wire.Secure).ConnectionState()
		require.True(t, state.HandshakeComplete)
		require.EqualValues(t, tls.VersionTLS13, state.Version)
		require.Equal(t, "asterisque/1", state.NegotiatedProtocol)
	}
	require.Empty(t, server.TLS.NextProtos, "the given config is not changed")
	require.Empty(t, client.TLS.NextProtos)
}

func TestTLS_Errors(t *testing.T) {
	server, client := tlsOptions(t)
	l := listen(t, "tls://127.0.0.1:0", server)
	go func() { // ends with l
		for {
			w, err := l.Accept()
			if err != nil {
				return
			}
			go func() { // ends with the handshake, or when the peer goes away
				defer w.Close()
				w.ReadFrame(0)
			}()
		}
	}()
	t.Run("certificate that is not trusted", func(t *testing.T) {
		_, err := wire.Dial(t.Context(), l.URL(), wire.Options{})
		var unknown x509.UnknownAuthorityError
		require.ErrorAs(t, err, &unknown)
		require.ErrorContains(t, err, "wire: dial "+l.URL())
	})
	t.Run("other protocol", func(t *testing.T) {
		cfg := client.TLS.Clone()
		cfg.NextProtos = []string{"h2"}
		_, err := wire.Dial(t.Context(), l.URL(), wire.Options{TLS: cfg})
		require.ErrorContains(t, err, "no application protocol")
	})
	t.Run("no TLS at the other end", func(t *testing.T) {
		plain, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer plain.Close()
		go func() { // ends with its connection
			if c, err := plain.Accept(); err == nil {
				c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				c.Close()
			}
		}()
		_, err = wire.Dial(t.Context(), "tls://"+plain.Addr().String(), client)
		require.ErrorContains(t, err, "does not look like a TLS handshake")
	})
}

// A failed TLS handshake affects only its own Wire.
func TestTLS_FailedHandshake(t *testing.T) {
	server, client := tlsOptions(t)
	l := listen(t, "tls://127.0.0.1:0", server)
	silent, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), "tls://"))
	require.NoError(t, err)
	defer silent.Close()
	first, err := l.Accept()
	require.NoError(t, err, "Accept does not wait for the handshake")
	defer first.Close()

	connect(t, l, client) // another one works meanwhile

	_, err = silent.Write([]byte("this is not TLS"))
	require.NoError(t, err)
	_, err = first.ReadFrame(100)
	require.ErrorContains(t, err, "wire: read: tls: first record does not look like a TLS handshake")
	require.Error(t, first.WriteFrames([][]byte{nil}))
}

// Close of a TLS connection does not wait for a peer that does not read.
func TestTLS_ClosePeerNotReading(t *testing.T) {
	server, client := tlsOptions(t)
	client.TLS.ServerName = "127.0.0.1"
	now := time.Now() // the certificates are of no use in the year of a bubble
	clock := func() time.Time { return now }
	client.TLS.Time, server.TLS.Time = clock, clock
	synctest.Test(t, func(t *testing.T) {
		p, q := net.Pipe() // has no buffer, so there is no room for a farewell
		here, there := tls.Client(p, client.TLS), tls.Server(q, server.TLS)
		defer q.Close()
		shaken := make(chan error)
		go func() { shaken <- there.Handshake() }()
		require.NoError(t, here.Handshake())
		require.NoError(t, <-shaken)
		before := time.Now()
		require.NoError(t, wire.FromConn(here).Close())
		require.Less(t, time.Since(before), 2*time.Second, "crypto/tls would wait for 5 s")
	})
}

// Nothing is lost when a TLS client closes without having read.
func TestTLS_CloseUnreadTickets(t *testing.T) {
	server, client := tlsOptions(t)
	// Without the cache, the server sends no session tickets.
	client.TLS.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	a, b := connect(t, listen(t, "tls://127.0.0.1:0", server), client)
	const n = 32
	written := make(chan error, 1)
	go func() { // which waits for the peer, but not for the last that it reads
		for range n {
			if err := a.WriteFrames([][]byte{make([]byte, 64<<10)}); err != nil {
				written <- err
				return
			}
		}
		written <- a.Close()
	}()
	for range n {
		_, err := b.ReadFrame(64 << 10)
		require.NoError(t, err)
	}
	_, err := b.ReadFrame(64 << 10)
	require.Equal(t, io.EOF, err)
	require.NoError(t, <-written)
}
