package classicwire

import (
	"slices"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec/classic"
)

// agreedCodec is the codec of the connection. The first side that sends decides it: a client by the
// codecs that its session offers, a server by the first bytes of its client. agreed locks itself.
type agreedCodec struct {
	codec atomic.Int32 // 0: undecided; otherwise one more than the codec
}

// is reports whether the codec is c. An undecided connection is set to c.
func (a *agreedCodec) is(c classic.Codec) bool {
	a.codec.CompareAndSwap(0, int32(c)+1)
	return a.of() == c
}

// of returns the codec. While the connection is undecided, it returns the original's default.
func (a *agreedCodec) of() classic.Codec {
	if n := a.codec.Load(); n > 0 {
		return classic.Codec(n - 1)
	}
	return classic.MessagePack
}

// among reports whether the codec is one of names, the codecs that a session offers. An undecided
// connection is set to the first of them.
func (a *agreedCodec) among(names []string) bool {
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
