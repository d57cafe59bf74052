package main

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"time"
)

// authority issues certificates for a demonstration. In production agents have certificates of a
// real authority.
type authority struct {
	cert *x509.Certificate // its own
	key  crypto.Signer
}

func newAuthority() (*authority, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	t := template("agents' authority")
	t.IsCA, t.BasicConstraintsValid, t.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(nil, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	return &authority{cert, key}, err
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // never fails
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute), // clocks differ
		NotAfter:     time.Now().Add(30 * 24 * time.Hour),
	}
}

// issue returns a certificate for a server on this machine, or for an agent: neither is valid for
// the other.
func (a *authority) issue(name string, usage x509.ExtKeyUsage) (cert tls.Certificate, err error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return cert, err
	}
	t := template(name)
	t.KeyUsage, t.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
	if usage == x509.ExtKeyUsageServerAuth {
		t.DNSNames, t.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
	}
	der, err := x509.CreateCertificate(nil, t, a.cert, key.Public(), a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// config returns a TLS configuration for either side, with a new certificate.
func (a *authority) config(name string, usage x509.ExtKeyUsage) (*tls.Config, error) {
	cert, err := a.issue(name, usage)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return mutual(&tls.Config{Certificates: []tls.Certificate{cert}}, roots), nil
}

// mutual makes both sides require a certificate of the same authority.
func mutual(c *tls.Config, roots *x509.CertPool) *tls.Config {
	c.RootCAs, c.ClientCAs, c.ClientAuth = roots, roots, tls.RequireAndVerifyClientCert
	return c
}
