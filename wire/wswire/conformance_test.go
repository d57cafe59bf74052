//go:build !js

package wswire_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestWires(t *testing.T) {
	server, client := tlsOptions(t)
	for _, scheme := range []string{"ws", "wss"} {
		dial := func(t *testing.T) (a, b wire.Wire) {
			return connect(t, listen(t, scheme+"://127.0.0.1:0/rpc", server), client)
		}
		t.Run(scheme+" from the dialler", func(t *testing.T) { wiretest.Run(t, dial) })
		t.Run(scheme+" from the acceptor", func(t *testing.T) {
			wiretest.Run(t, func(t *testing.T) (a, b wire.Wire) {
				b, a = dial(t)
				return a, b
			})
		})
	}
}
