package asterisque

import (
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/limits"
)

// job is the interface of a peer's call for the dispatcher and the workers. Its properties are
// fixed once it waits.
type job interface {
	workWaiter

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

	// shift returns the work source in which the call runs.
	shift() workSource

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
	job      job    // the last call of a worker; nil while it is idle
}

// workSource is the work of a worker: the calls that wait at a dispatcher, or the one call to which
// it is lent.
type workSource interface {
	// lent reports whether the work source is beyond the limit, because a running call waits for
	// it.
	lent() bool

	// work runs calls until none waits. It returns true when the worker has to give way to other
	// work sources first; crowded reports that they wait.
	work(w *workspace, crowded *atomic.Bool) (again bool)

	// workerLost is called when the goroutine of a worker was ended by its call. It reports whether
	// another worker is to repeat the work source.
	workerLost(w *workspace) (again bool)

	// ownedBy returns the owner of the calls.
	ownedBy() *quota.Owner
}

// minRetryAfter is the minimum delay that a rejected caller is advised.
const minRetryAfter = 10 * time.Millisecond
