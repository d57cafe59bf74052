package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"

	"github.com/asterisque-go/asterisque/wire"
)

// peers returns the connections to the other side.
func (f flags) peers(ctx context.Context, stdout io.Writer) (peers, error) {
	cfg, err := f.tls()
	if err != nil {
		return nil, usageError{err}
	}
	opts := wire.Options{TLS: cfg}
	if f.dial != "" {
		return dialledPeers{f.dial, opts}, nil
	}
	ln, err := wire.Listen(ctx, f.listen, opts)
	if err != nil {
		return nil, err
	}
	prefix := ""
	if f.tap {
		prefix = "# "
	}
	fmt.Fprintf(stdout, "%slistens at %s\n", prefix, ln.URL())
	return accept(ln, (&player{patience: f.patience}).scaled(fresh)), nil
}

// tls returns the TLS configuration of the flags, or nil.
func (f flags) tls() (*tls.Config, error) {
	if f.ca == "" && f.cert == "" && f.key == "" {
		return nil, nil
	}
	cfg := new(tls.Config)
	if f.ca != "" {
		pem, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, err
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("-ca: there is no certificate in %s", f.ca)
		}
	}
	if f.cert != "" || f.key != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, err
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return cfg, nil
}
