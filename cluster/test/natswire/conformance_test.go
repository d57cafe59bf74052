package natswire_test

import (
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestWires(t *testing.T) {
	s := broker(t)
	tight := broker(t, func(o *server.Options) { o.MaxPayload = 600 })
	serverTLS, clientTLS := testtls.Configs(t)
	dialled := func(t *testing.T) (a, b wire.Wire) {
		return pairAt(t, listenAt(t, s.ClientURL()+"/wires", wire.Options{}), wire.Options{})
	}
	accepted := func(t *testing.T) (a, b wire.Wire) {
		b, a = dialled(t)
		return a, b
	}
	secret := func(t *testing.T) (a, b wire.Wire) {
		return pairAt(t, listenAt(t, secretURL(s)+"/localhost", wire.Options{TLS: serverTLS}), wire.Options{TLS: clientTLS})
	}
	for name, pair := range map[string]func(t *testing.T) (a, b wire.Wire){
		"from the dialler":                dialled,
		"from the acceptor":               accepted,
		"with TLS between the ends":       secret,
		"over a connection of the user's": func(t *testing.T) (a, b wire.Wire) { return pairOver(t, connectTo(t, s), connectTo(t, s)) },
		"in messages of 600 bytes": func(t *testing.T) (a, b wire.Wire) {
			return pairAt(t, listenAt(t, tight.ClientURL()+"/wires", wire.Options{}), wire.Options{})
		},
	} {
		t.Run(name, func(t *testing.T) { wiretest.Run(t, pair) })
	}
}
