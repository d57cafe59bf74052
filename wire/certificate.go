package wire

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// CertificateFiles is a certificate in two PEM files that is read again when the files have
// changed, so that it can be renewed while sessions go on: those that are there keep what they
// began with. Its methods are for [tls.Config.GetCertificate] and
// [tls.Config.GetClientCertificate]; they are safe for concurrent use.
type CertificateFiles struct {
	certFile, keyFile string // fixed

	mu      sync.Mutex
	loaded  *tls.Certificate // guarded by mu, as changed
	changed [2]time.Time     // of the files, when they were read
}

// LoadCertificateFiles reads a certificate, with those that lead to its root behind it, and its
// key.
func LoadCertificateFiles(certFile, keyFile string) (*CertificateFiles, error) {
	c := &CertificateFiles{certFile: certFile, keyFile: keyFile}
	if _, err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// GetCertificate returns the certificate as it is now. If the files have changed and cannot be
// read, or do not fit each other, it is the one before: files are seldom replaced both at once.
func (c *CertificateFiles) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return c.load()
}

// GetClientCertificate is GetCertificate for the side that dials.
func (c *CertificateFiles) GetClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return c.load()
}

func (c *CertificateFiles) load() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed, err := c.times()
	if err == nil && (c.loaded == nil || changed != c.changed) {
		var cert tls.Certificate
		if cert, err = tls.LoadX509KeyPair(c.certFile, c.keyFile); err == nil {
			c.loaded, c.changed = &cert, changed
		}
	}
	if c.loaded == nil {
		return nil, fmt.Errorf("wire: certificate %s with key %s: %w", c.certFile, c.keyFile, err)
	}
	return c.loaded, nil
}

func (c *CertificateFiles) times() (changed [2]time.Time, err error) {
	for i, name := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return changed, err
		}
		changed[i] = info.ModTime()
	}
	return changed, nil
}
