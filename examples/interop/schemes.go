package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	_ "github.com/asterisque-go/asterisque/wire/classicwire" // classic://
	_ "github.com/asterisque-go/asterisque/wire/natswire"    // nats:// and nats+tls://
	_ "github.com/asterisque-go/asterisque/wire/quicwire"    // quic://
	_ "github.com/asterisque-go/asterisque/wire/smuxwire"    // smux:// and smux+tls://
	_ "github.com/asterisque-go/asterisque/wire/wswire"      // ws:// and wss://
)

// schemes are those of a run without arguments, in this order.
var schemes = []string{"tcp", "tls", "unix", "ws", "wss", "quic", "smux", "smux+tls", "nats", "nats+tls", "mem", "classic"}

// localURL returns a URL to listen at for a scheme, and a function for the cleanup. A Unix socket
// is created in dir. The certificate of a listener behind NATS has to be for the name there.
func localURL(scheme, dir string) (url string, end func(), err error) {
	switch scheme {
	case "unix":
		url = "unix://" + filepath.ToSlash(filepath.Join(dir, "interop.sock"))
	case "mem":
		url = "mem://" + rand.Text()
	case "ws", "wss":
		url = scheme + "://127.0.0.1:0/rpc"
	case "nats", "nats+tls":
		address, end, err := startNATS()
		return scheme + "://" + address + "/localhost", end, err
	default:
		url = scheme + "://127.0.0.1:0"
	}
	return url, func() {}, nil
}

// isClassic reports whether a URL is for the classic protocol.
func isClassic(url string) bool { return strings.HasPrefix(url, "classic:") }

// selfMade returns TLS configurations for a side that listens at this computer, with a self-signed
// certificate, and for one that trusts only that certificate. The certificate itself is returned as
// PEM.
func selfMade() (server, client *tls.Config, certificate []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(time.Now().UnixNano()),
		Subject:               pkix.Name{CommonName: "interop"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, nil, err
	}
	certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	client, err = trusting(certificate)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, client, certificate, err
}

// trusting returns the configuration of a side that trusts only the certificates in pem.
func trusting(pem []byte) (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("there is no certificate in the %d bytes of PEM", len(pem))
	}
	return &tls.Config{RootCAs: roots}, nil
}

// trustingFile is trusting for a file. Without one, the roots of the system are trusted.
func trustingFile(name string) (*tls.Config, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	cfg, err := trusting(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return cfg, nil
}
