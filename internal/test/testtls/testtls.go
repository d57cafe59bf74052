// Package testtls makes certificates for tests. Only peers configured with their authority trust
// them.
package testtls

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Authority issues certificates.
type Authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns a new authority.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	return a
}

// sign makes a certificate from template, with a new key. The certificate of the authority itself
// is self-signed.
func (a *Authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	template.SerialNumber, template.NotBefore = big.NewInt(time.Now().UnixNano()), time.Now().Add(-48*time.Hour)
	parent, parentKey := a.cert, a.key
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	require.NoError(a.t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(a.t, err)
	return cert, key
}

// Issue returns a certificate for both sides of a connection to 127.0.0.1 or localhost, and to name
// if that is a host name. It expires at the last full second before lifetime has passed. A negative
// lifetime makes an expired certificate.
func (a *Authority) Issue(name string, lifetime time.Duration) tls.Certificate {
	a.t.Helper()
	hosts := []string{"localhost"}
	if !strings.Contains(name, " ") {
		hosts = append(hosts, name)
	}
	cert, key := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: hosts, NotAfter: time.Now().Add(lifetime),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	return tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}
}

// Pool returns a pool with the certificate of a, for peers that trust a.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// Server returns the configuration of a server that accepts clients without a certificate, and
// those with a certificate of a.
func (a *Authority) Server() *tls.Config {
	a.t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{a.Issue("server", time.Hour)}, ClientCAs: a.Pool(), ClientAuth: tls.VerifyClientCertIfGiven}
}

// Client returns the configuration of a client that trusts a and presents certificates, if any.
func (a *Authority) Client(certificates ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: a.Pool(), Certificates: certificates}
}

// Configs returns the configurations of a server and of the only client that trusts it.
func Configs(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	a := NewAuthority(t)
	return a.Server(), a.Client()
}
