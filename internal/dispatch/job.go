package dispatch

import (
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
)

// Job is the interface of a peer's call for the dispatcher and the workers. Its properties are
// fixed once it waits.
type Job interface {
	// Dispatcher returns the dispatcher of the call's session.
	Dispatcher() *Dispatcher

	// Task returns the dispatcher's state of the call.
	Task() *Task

	// Limit returns the concurrency limit that bounds similar calls, or nil if there is none.
	Limit() *ConcurrencyLimit

	// OnlyWaits reports whether the handler only waits, and so needs no worker of the session.
	OnlyWaits() bool

	// Turn returns the call's place in the order of its key, or nil if it has none.
	Turn() (*KeyedOrder, *Turn)

	// Weight returns the bytes that the call holds while it runs: its parameters and their decoded
	// form.
	Weight() int

	// Cost returns the cost of its Open.
	Cost() uint64

	// Begin is called when a worker is about to run the call. Its Blocks have the window h.
	Begin(h flow.Window)

	// Run runs the call, and answers it.
	Run(w *Workspace)

	// Unlist is called when the call no longer waits, and will not run.
	Unlist()

	// Refuse answers a call that will not run.
	Refuse(a *codec.Abort)

	// Abandon is called in place of Refuse if no caller waits for an answer: the session has ended.
	Abandon()
}

// Workspace is the memory that a worker, or the reader, keeps from one call to the next.
type Workspace struct {
	Result   []byte // buffer for the results of typed handlers
	Operands any    // parameters and result of a typed handler; see operandsFor
}

// MinRetryAfter is the minimum delay that a rejected caller is advised.
const MinRetryAfter = 10 * time.Millisecond
