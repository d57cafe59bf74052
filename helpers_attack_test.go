package asterisque_test

import (
	"context"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
)

// heldSince returns by how many bytes the heap has grown since before. What is held is held at each
// look, while a buffer that is about to be let go is not: so it looks again if that is beyond
// bound.
func heldSince(before, bound int) (grown int) {
	for range 10 {
		if grown = heap() - before; grown <= bound {
			break
		}
	}
	return grown
}

// long returns the larger number if the long versions of the tests are to run.
func long(usual, long int) int {
	if *soak {
		return long
	}
	return usual
}

// named lets each peer prove by its word who it is: its node's name is its Subject.
func named() asterisque.Option {
	return asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: p.ID}, nil
	}})
}

// helloOf is hello of a peer with a name.
func helloOf(name string) message.Sync {
	h := hello()
	h.Node = []byte(name)
	return h
}
