package piping

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/limits"
)

// leftover is what nobody has taken of a pipe whose call has ended well. It holds its room until it
// is taken, or until nobody can take it any more: then the garbage collector ends it.
type leftover struct {
	terms           *Terms
	messages, bytes int
	hold            limits.Hold
	debt            int           // of the room for large Blocks
	shelter         int           // or elsewhere
	done            atomic.Uint32 // how many of begin and end
}

// heldLeft is the number of bytes that a leftover holds itself, with the special part of its
// receiver.
const heldLeft = 256

// begin counts what l holds itself. Its end may have come before.
func (l *leftover) begin() {
	l.terms.Ledger.Taken(0, -heldLeft)
	l.settle()
}

// end gives back what l holds.
func (l *leftover) end() {
	l.settle()
	l.terms.Left.Add(-1)
	if l.messages > 0 {
		l.terms.Ledger.Taken(l.messages, l.bytes)
	}
	if l.shelter > 0 {
		l.terms.Ledger.Shelter(-l.shelter)
	}
	if l.terms.Room != nil {
		limits.Grant(l.terms.Room.Disallow(l.debt))
		limits.Grant(l.terms.Room.End(&l.hold))
	}
}

// settle is called by begin and by end. The second of them takes back what begin has counted.
func (l *leftover) settle() {
	if l.done.Add(1) == 2 {
		l.terms.Ledger.Taken(0, heldLeft)
	}
}

// took notes that a Block was taken, and reports whether it was the last one.
func (l *leftover) took(bytes int) (last bool) {
	l.messages--
	l.bytes -= bytes
	return l.messages == 0
}
