package smuxwire_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/wire"
	_ "github.com/asterisque-go/asterisque/wire/smuxwire"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(io.Discard, nil))) // the tests provoke what is logged
	leak.Main(m)
}

// listen listens until t ends.
func listen(t testing.TB, url string, o wire.Options) wire.Listener {
	t.Helper()
	l, err := wire.Listen(context.Background(), url, o)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// connect dials l and returns both ends, which are closed when t ends.
func connect(t testing.TB, l wire.Listener, o wire.Options) (dialled, accepted wire.Wire) {
	t.Helper()
	dialled, err := wire.Dial(context.Background(), l.URL(), o)
	require.NoError(t, err)
	t.Cleanup(func() { dialled.Close() })
	accepted, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}

// tlsOptions returns a server's and a client's Options, with a certificate for 127.0.0.1 that only this client trusts.
func tlsOptions(t testing.TB) (server, client wire.Options) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return wire.Options{TLS: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}},
		wire.Options{TLS: &tls.Config{RootCAs: roots}}
}
