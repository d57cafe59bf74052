package classicwire

import (
	"slices"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/classic"
)

// agreed is the codec of the connection, which whoever speaks first decides on: a client by what
// its session offers, and a server by what its client has said. It locks itself.
type agreed struct {
	codec atomic.Int32 // 0: nobody has spoken; otherwise one more than the codec
}

// is reports whether the codec is c, which it is from now on if nobody has spoken.
func (a *agreed) is(c classic.Codec) bool {
	a.codec.CompareAndSwap(0, int32(c)+1)
	return a.of() == c
}

// of returns the codec, or the original's default as long as nobody has spoken.
func (a *agreed) of() classic.Codec {
	if n := a.codec.Load(); n > 0 {
		return classic.Codec(n - 1)
	}
	return classic.MessagePack
}

// among reports whether the codec is one of those that a session offers by their names, the first
// of which it is from now on if nobody has spoken.
func (a *agreed) among(names []string) bool {
	for _, name := range names {
		for _, c := range []classic.Codec{classic.MessagePack, classic.Simple} {
			if c.Name() == name {
				a.is(c)
				return slices.Contains(names, a.of().Name())
			}
		}
	}
	return false
}
