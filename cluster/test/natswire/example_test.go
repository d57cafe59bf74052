package natswire_test

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
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

func Example() {
	ctx := context.Background()
	nats := startServer() // a real program has one somewhere else
	defer nats.Shutdown()
	greet := asterisque.Func[string, string](10, "greet")
	service := asterisque.NewService()
	greet.Handle(service, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })

	there := asterisque.NewNode(asterisque.WithService(service))
	defer there.Close()
	l, err := wire.Listen(ctx, nats.ClientURL()+"/greeter", wire.Options{})
	if err != nil {
		log.Panic(err)
	}
	go there.Serve(ctx, l)

	here := asterisque.NewNode()
	defer here.Close()
	session, err := here.Dial(ctx, nats.ClientURL()+"/greeter")
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(greet.Call(ctx, session, "asterisk"))
	// Output: hello, asterisk <nil>
}

// Two programs with connections to NATS meet through the server, and use TLS with each other, so
// that the server cannot read their data.
func Example_dial() {
	ctx := context.Background()
	s := startServer()
	defer s.Shutdown()
	echo := asterisque.Func[string, string](10, "echo")
	service := asterisque.NewService()
	echo.Handle(service, func(_ context.Context, s string) (string, error) { return s, nil })
	certificate, roots := certificates("echo") // a real program loads them

	nc, err := nats.Connect(s.ClientURL(), nats.Name("the listening side"))
	if err != nil {
		log.Panic(err)
	}
	defer nc.Close()
	l, err := natswire.Listen(ctx, nc, "echo", &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		log.Panic(err)
	}
	there := asterisque.NewNode(asterisque.WithService(service))
	defer there.Close()
	go there.Serve(ctx, l)

	nc, err = nats.Connect(s.ClientURL(), nats.Name("the dialling side"))
	if err != nil {
		log.Panic(err)
	}
	defer nc.Close()
	w, err := natswire.Dial(ctx, nc, "echo", &tls.Config{RootCAs: roots})
	if err != nil {
		log.Panic(err)
	}
	here := asterisque.NewNode()
	defer here.Close()
	session, err := here.Attach(ctx, w)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(echo.Call(ctx, session, "sealed"))
	fmt.Println(session.Peer().TLS.PeerCertificates[0].DNSNames)
	// Output:
	// sealed <nil>
	// [echo]
}

// A custom scheme has credentials that no URL can hold, and reconnects to nodes.
func Example_transport() {
	ctx := context.Background()
	s := startServer()
	defer s.Shutdown()
	orders := natswire.Transport{Options: []nats.Option{nats.Name("orders"), nats.UserInfo("me", "secret")}}
	if err := wire.Register("orders", orders); err != nil {
		log.Panic(err)
	}
	_, err := wire.Dial(ctx, "orders://"+s.Addr().String()+"/eu", wire.Options{})
	fmt.Println(err != nil) // there is no listener
	// Output: true
}

// startServer starts a NATS server in this process.
func startServer() *server.Server {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		log.Panic(err)
	}
	s.Start()
	if !s.ReadyForConnections(2 * time.Minute) {
		log.Panic("the NATS server does not start")
	}
	return s
}

// certificates makes a certificate for a name and the roots that trust it.
func certificates(name string) (tls.Certificate, *x509.CertPool) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
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
