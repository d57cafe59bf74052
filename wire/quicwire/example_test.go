package quicwire_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"math/big"
	"net"
	"strings"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/quicwire"
)

func Example() {
	ctx := context.Background()
	greet := asterisque.Func[string, string](10, "greet")
	service := asterisque.NewService()
	greet.Handle(service, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })

	// A real program loads the certificate, for example with tls.LoadX509KeyPair.
	certificate, roots := certificates()
	there := asterisque.NewNode(asterisque.WithService(service))
	defer there.Close()
	l, err := wire.Listen(ctx, "quic://127.0.0.1:0", wire.Options{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	if err != nil {
		log.Panic(err)
	}
	go there.Serve(ctx, l)

	here := asterisque.NewNode(asterisque.WithTLS(&tls.Config{RootCAs: roots}))
	defer here.Close()
	session, err := here.Dial(ctx, l.URL())
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(greet.Call(ctx, session, "asterisk"))
	// Output: hello, asterisk <nil>
}

// Two sessions share a connection, so that lost packets of one session do not delay the other.
func ExampleConn() {
	ctx := context.Background()
	echo := asterisque.Func[string, string](10, "echo")
	service := asterisque.NewService()
	echo.Handle(service, func(_ context.Context, s string) (string, error) { return s, nil })

	certificate, roots := certificates()
	there := asterisque.NewNode(asterisque.WithService(service))
	defer there.Close()
	l, err := wire.Listen(ctx, "quic://127.0.0.1:0", wire.Options{TLS: &tls.Config{Certificates: []tls.Certificate{certificate}}})
	if err != nil {
		log.Panic(err)
	}
	go there.Serve(ctx, l)

	conn, err := quicwire.Dial(ctx, strings.TrimPrefix(l.URL(), "quic://"), &tls.Config{RootCAs: roots})
	if err != nil {
		log.Panic(err)
	}
	defer conn.Close()
	here := asterisque.NewNode()
	defer here.Close()
	for _, name := range []string{"calls", "transfers"} {
		w, err := conn.Open()
		if err != nil {
			log.Panic(err)
		}
		session, err := here.Attach(ctx, w)
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(echo.Call(ctx, session, "a session for "+name))
	}
	// Output:
	// a session for calls <nil>
	// a session for transfers <nil>
}

// certificates makes a certificate for 127.0.0.1 and the roots that trust it.
func certificates() (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		log.Panic(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		log.Panic(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
