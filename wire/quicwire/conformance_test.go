package quicwire

import (
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestWires(t *testing.T) {
	server, client := testtls.Configs(t)
	dialled := func(t *testing.T) (a, b wire.Wire) { return connect(t, listenFor(t, server), client) }
	shared := func(t *testing.T) (a, b wire.Wire) {
		l := listenFor(t, server)
		return openOn(t, dialFor(t, address(l), client), l)
	}
	swapped := func(pair func(t *testing.T) (a, b wire.Wire)) func(t *testing.T) (a, b wire.Wire) {
		return func(t *testing.T) (a, b wire.Wire) {
			b, a = pair(t)
			return a, b
		}
	}
	for name, pair := range map[string]func(t *testing.T) (a, b wire.Wire){
		"from the dialler":           dialled,
		"from the acceptor":          swapped(dialled),
		"over a connection to share": shared,
	} {
		t.Run(name, func(t *testing.T) { wiretest.Run(t, pair) })
	}
}
