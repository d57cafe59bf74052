package piping

import (
	"sync/atomic"

	"github.com/asterisque-go/asterisque/internal/flow"
)

// leftover is the untaken Blocks of a pipe after its call has ended without an error. It holds its
// room until the Blocks are taken, or until they are unreachable: then the garbage collector calls
// end.
type leftover struct {
	terms           *Terms
	messages, bytes int
	hold            flow.Hold
	debt            int           // bytes in the room for large Blocks
	reserved        int           // or in the room for running calls
	done            atomic.Uint32 // number of calls of begin and end
}

// heldLeft is the memory of a leftover itself, with the special part of its receiver, in bytes.
const heldLeft = 256

// begin counts the memory of l itself. end may have been called before.
func (l *leftover) begin() {
	l.terms.Ledger.Taken(0, -heldLeft)
	l.settle()
}

// end releases the room of l.
func (l *leftover) end() {
	l.settle()
	l.terms.Left.Add(-1)
	if l.messages > 0 {
		l.terms.Ledger.Taken(l.messages, l.bytes)
	}
	if l.reserved > 0 {
		l.terms.Ledger.Reserve(-l.reserved)
	}
	if l.terms.Room != nil {
		flow.Grant(l.terms.Room.Disallow(l.debt))
		flow.Grant(l.terms.Room.End(&l.hold))
	}
}

// settle is called by begin and by end. The second call reverts the count of begin.
func (l *leftover) settle() {
	if l.done.Add(1) == 2 {
		l.terms.Ledger.Taken(0, heldLeft)
	}
}

// took records that a Block was taken, and reports whether it was the last one.
func (l *leftover) took(bytes int) (last bool) {
	l.messages--
	l.bytes -= bytes
	return l.messages == 0
}
