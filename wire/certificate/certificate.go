// Package certificate reads certificates from files, and reads them again after a renewal.
//
//	files, err := certificate.Load("cert.pem", "key.pem")
//	…
//	options := wire.Options{TLS: &tls.Config{GetCertificate: files.GetCertificate}}
package certificate

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// Files is a certificate in two PEM files. Files reads them again when they have changed, so that a
// certificate can be renewed while sessions are open. Open sessions keep the certificate that they
// started with. Its methods are for the fields GetCertificate and GetClientCertificate of a
// [tls.Config]. They may be called concurrently.
type Files struct {
	certFile, keyFile string // fixed

	mu      sync.Mutex
	loaded  *tls.Certificate // guarded by mu, as all below
	changed [2]time.Time     // modification times of the files at the last load
}

// Load reads a certificate and its key. certFile holds the certificate, followed by the
// intermediate certificates that lead to its root.
func Load(certFile, keyFile string) (*Files, error) {
	c := &Files{certFile: certFile, keyFile: keyFile}
	if _, err := c.load(); err != nil {
		return nil, err
	}
	return c, nil
}

// GetCertificate returns the current certificate. If the files have changed, and cannot be read or
// do not match each other, it returns the previous certificate: two files are rarely replaced at
// the same moment.
func (f *Files) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return f.load()
}

// GetClientCertificate is GetCertificate for the dialling side.
func (f *Files) GetClientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return f.load()
}

func (f *Files) load() (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, err := f.times()
	if err == nil && (f.loaded == nil || changed != f.changed) {
		var cert tls.Certificate
		if cert, err = tls.LoadX509KeyPair(f.certFile, f.keyFile); err == nil {
			f.loaded, f.changed = &cert, changed
		}
	}
	if f.loaded == nil {
		return nil, fmt.Errorf("certificate: %s with key %s: %w", f.certFile, f.keyFile, err)
	}
	return f.loaded, nil
}

func (f *Files) times() (changed [2]time.Time, err error) {
	for i, name := range []string{f.certFile, f.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return changed, err
		}
		changed[i] = info.ModTime()
	}
	return changed, nil
}
