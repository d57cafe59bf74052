package asterisque

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// job is a call of the peer that is to be run, as the dispatcher and the workers know it. What it
// returns about itself is fixed once it waits.
type job interface {
	waiter

	// task returns what is kept of it here.
	task() *task

	// gate returns what bounds how many calls like it run at once, or nil: it need not wait there.
	gate() *gate

	// onlyWaits reports whether it does nothing but wait, and so needs no worker of the session.
	onlyWaits() bool

	// turn returns its place in the order of its key, or nil if it has none.
	turn() (*keys, *turn)

	// weight returns how many bytes it holds while it runs: its parameters, and what they become.
	weight() int

	// cost returns what its Open has cost of the room for Opens.
	cost() uint64

	// shift returns that in which it runs.
	shift() shift

	// begin is called when a worker is about to run it. Its Blocks have the window h.
	begin(h limits.Hold)

	// run runs it, and answers.
	run(w *workspace)

	// unlist is called when it waits no more, and will not run.
	unlist()

	// refuse answers one that will not run.
	refuse(a *codec.Abort)

	// abandon is called in place of refuse if nobody waits for an answer: the session has ended.
	abandon()
}

// workspace is what a worker, or the reader, keeps from one call to the next.
type workspace struct {
	result   []byte // where typed handlers put their results
	operands any    // where a typed handler has its parameters and its result; see operandsFor
	job      job    // that a worker has taken last; nil while it is idle
}

// shift is what a worker comes for: the calls that wait at a dispatcher, or the one call that it is
// lent to.
type shift interface {
	// lent reports whether the shift is beyond the limit: it is what a worker at its work waits
	// for.
	lent() bool

	// work runs calls until none waits. It returns true when the worker has to give way to others
	// first; crowded says that they wait.
	work(w *workspace, crowded *atomic.Bool) (again bool)

	// workerLost is called when the goroutine of a worker was ended by the call that it had taken.
	// It reports whether the shift is to be done again, by another one.
	workerLost(w *workspace) (again bool)

	// ownedBy returns to whom the calls belong.
	ownedBy() *owner
}

// minRetryAfter is the least that a refused caller is advised to wait.
const minRetryAfter = 10 * time.Millisecond
