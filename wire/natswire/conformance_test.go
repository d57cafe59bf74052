package natswire

import (
	"testing"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestWires(t *testing.T) {
	s := broker(t)
	plain := func(t *testing.T) (a, b wire.Wire) {
		return pairAt(t, listenAt(t, s.ClientURL()+"/wires", wire.Options{}), wire.Options{})
	}
	wiretest.Run(t, plain)
}
