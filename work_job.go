package asterisque

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// job is the interface of a peer's call for the dispatcher and the workers. Its properties are
// fixed once it waits.
type job interface {
	// dispatcher returns the dispatcher of the call's session.
	dispatcher() *dispatcher

	// task returns the dispatcher's state of the call.
	task() *task

	// limit returns the concurrency limit that bounds similar calls, or nil if there is none.
	limit() *concurrencyLimit

	// onlyWaits reports whether the handler only waits, and so needs no worker of the session.
	onlyWaits() bool

	// turn returns the call's place in the order of its key, or nil if it has none.
	turn() (*keyedOrder, *keyTurn)

	// weight returns the bytes that the call holds while it runs: its parameters and their decoded
	// form.
	weight() int

	// cost returns the cost of its Open.
	cost() uint64

	// begin is called when a worker is about to run the call. Its Blocks have the window h.
	begin(h limits.Hold)

	// run runs the call, and answers it.
	run(w *workspace)

	// unlist is called when the call no longer waits, and will not run.
	unlist()

	// refuse answers a call that will not run.
	refuse(a *codec.Abort)

	// abandon is called in place of refuse if no caller waits for an answer: the session has ended.
	abandon()
}

// workspace is the memory that a worker, or the reader, keeps from one call to the next.
type workspace struct {
	result   []byte // buffer for the results of typed handlers
	operands any    // parameters and result of a typed handler; see operandsFor
}

// minRetryAfter is the minimum delay that a rejected caller is advised.
const minRetryAfter = 10 * time.Millisecond
