package natswire_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// A program calls another one, which has called ListenAndServe with the same URL.
func Example() {
	ctx := context.Background()
	node := asterisque.NewNode()
	defer node.Close()
	session, err := node.Dial(ctx, "nats://127.0.0.1:4222/greeter")
	if err != nil {
		log.Panic(err)
	}
	greet := asterisque.Func[string, string](10, "greet")
	fmt.Println(greet.Call(ctx, session, "asterisk"))
}

// A connection of the application carries a Wire with TLS between its ends, so that the server
// cannot read the data.
func ExampleDial() {
	ctx := context.Background()
	nc, err := nats.Connect(nats.DefaultURL, nats.UserCredentials("me.creds"))
	if err != nil {
		log.Panic(err)
	}
	defer nc.Close()
	w, err := natswire.Dial(ctx, nc, "echo", new(tls.Config))
	if err != nil {
		log.Panic(err)
	}
	node := asterisque.NewNode()
	defer node.Close()
	session, err := node.Attach(ctx, w)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(session.Peer().TLS.PeerCertificates[0].DNSNames)
}

// A custom scheme has credentials that no URL can hold.
func ExampleTransport() {
	orders := natswire.Transport{Options: []nats.Option{nats.UserCredentials("me.creds")}}
	if err := wire.Register("orders", orders); err != nil {
		log.Panic(err)
	}
	w, err := wire.Dial(context.Background(), "orders://127.0.0.1:4222/eu", wire.Options{})
	if err != nil {
		log.Panic(err)
	}
	w.Close()
}
