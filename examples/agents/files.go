package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"

	"github.com/asterisque-go/asterisque/wire/certificate"
)

// files are the certificates of a separate program.
type files struct{ cert, key, ca string }

// config reads them. A certificate that is renewed is used from the next session on.
func (f files) config() (*tls.Config, error) {
	own, err := certificate.Load(f.cert, f.key)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(f.ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("-ca: %s holds no certificate in PEM", f.ca)
	}
	return mutual(&tls.Config{GetCertificate: own.GetCertificate, GetClientCertificate: own.GetClientCertificate}, roots), nil
}

// nameOf returns the name in the certificate of c.
func nameOf(c *tls.Config) (string, error) {
	own, err := c.GetClientCertificate(nil)
	if err != nil {
		return "", err
	}
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		return "", err
	}
	return leaf.Subject.CommonName, nil
}

// writeSet writes the certificates of a server and of the given number of agents to a folder, which
// it creates if needed.
func writeSet(dir string, agents int) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	a, err := newAuthority()
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, "ca.pem"), "CERTIFICATE", a.cert.Raw); err != nil {
		return err
	}
	if err := a.write(dir, "server", x509.ExtKeyUsageServerAuth); err != nil {
		return err
	}
	for n := range agents {
		if err := a.write(dir, agentName(n), x509.ExtKeyUsageClientAuth); err != nil {
			return err
		}
	}
	return nil
}

// write writes a new certificate and its key.
func (a *authority) write(dir, name string, usage x509.ExtKeyUsage) error {
	cert, err := a.issue(name, usage)
	if err != nil {
		return err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return err
	}
	if err := writePEM(filepath.Join(dir, name+".pem"), "CERTIFICATE", cert.Certificate[0]); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, name+"-key.pem"), "PRIVATE KEY", key)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func agentName(n int) string { return fmt.Sprintf("agent-%02d", n+1) }
