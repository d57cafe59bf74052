package call

import (
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/priority"
)

// sendLimit counts the outbound messages of a session, and queues senders at the soft limit.
// Messages wait by priority, with a share for lower ones as in the outbox, and among equals in
// order: no message overtakes an earlier one of the same priority or a higher one.
//
// While no sender waits, counting takes no lock. A waiter sets queued before it reads the count,
// and a goroutine that lowers the count reads queued afterwards: one of the two sees the other.
type sendLimit struct {
	*flow.Counter
	share float64 // of lower priorities; fixed

	queued  atomic.Bool // a sender waits; written with mu held
	mu      sync.Mutex
	ended   bool         // guarded by mu, as all below: no more messages, and no waits
	admits  bool         // a goroutine is in admit
	again   bool         // a second goroutine has asked for a repetition of admit
	waiting *sendWaiters // nil until a sender waits
}

// sendWaiters is the queue of waiting messages.
type sendWaiters struct {
	queue priority.Queue[*sendWaiter]
	flows map[priority.Priority]*priority.Flow[*sendWaiter] // one for each priority
	gone  int                                               // canceled entries of queue
}

// leftBeforeCleaning is the minimum number of entries that have left before the queue is cleaned.
const leftBeforeCleaning = 32

// sendWaiter is a waiting message.
type sendWaiter struct {
	held    int
	gone    bool   // its sender was canceled; guarded by the lock of its sendLimit, as counted
	counted bool   // it no longer waits
	waits   bool   // its sender waits, so that proceed is to be called
	proceed func() // called without a lock when it is counted; fixed
}

// reserve counts a message that holds held bytes if it may be sent now. Otherwise it returns a
// place in the queue, and calls proceed when the message has been counted.
func (o *sendLimit) reserve(p priority.Priority, held int, proceed func()) *sendWaiter {
	if !o.queued.Load() && o.Reserve(held) {
		return nil
	}
	d := &sendWaiter{held: held, proceed: proceed}
	o.queue(p, d)
	o.admit()
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.counted { // counted at once, as without a queue
		return nil
	}
	d.waits = true
	return d
}

// queue puts d behind the messages of its priority.
func (o *sendLimit) queue(p priority.Priority, d *sendWaiter) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued.Store(true)
	if o.waiting == nil {
		o.waiting = &sendWaiters{flows: make(map[priority.Priority]*priority.Flow[*sendWaiter])}
		o.waiting.queue.Guard(o.share)
	}
	w := o.waiting
	f := w.flows[p]
	if f == nil {
		f = &priority.Flow[*sendWaiter]{Priority: p}
		w.flows[p] = f
	}
	w.queue.Push(f, d, d.held)
}

// Remove subtracts messages with bytes in all from the count, and admits waiting ones.
func (o *sendLimit) Remove(messages, bytes int) {
	o.Counter.Remove(messages, bytes)
	o.admit()
}

// admit counts waiting messages, as far as the limit allows. One goroutine at a time does so,
// without the lock while it counts: the Counter reports a limit on that goroutine, and then
// messages may be dropped, which are removed from the count here.
func (o *sendLimit) admit() {
	if !o.queued.Load() {
		return
	}
	over := false
	defer func() {
		if !over { // the report has ended the goroutine
			o.stop()
		}
	}()
	for d, anyway := o.begin(); d != nil; {
		ok := o.count(d.held, anyway)
		if ok && !o.letGo(d) {
			o.Counter.Remove(1, d.held)
		}
		d, anyway = o.next(ok)
	}
	over = true
}

// begin returns the first waiting message, unless another goroutine is in admit already, or no
// message waits. anyway reports that the limit does not apply.
func (o *sendLimit) begin() (d *sendWaiter, anyway bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.admits {
		o.again = true
		return nil, false
	}
	o.admits = true
	return o.nextLocked(), o.ended
}

// next returns the message that follows the last one tried; ok reports that the last one was
// counted. If it was not, and no goroutine has asked for a repetition, admit ends and the rest keep
// waiting.
func (o *sendLimit) next(ok bool) (d *sendWaiter, anyway bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !ok && !o.again {
		o.admits = false
		return nil, false
	}
	return o.nextLocked(), o.ended
}

// nextLocked returns the first waiting message. If there is none, it returns nil and ends admit.
func (o *sendLimit) nextLocked() (first *sendWaiter) {
	o.again = false
	w := o.waiting
	isGone := func(d **sendWaiter, _ int) bool { first = *d; return first.gone }
	for _, gone := w.queue.PopIf(isGone); gone; _, gone = w.queue.PopIf(isGone) {
		w.gone--
		first = nil
	}
	if first == nil {
		o.queued.Store(false)
		o.admits = false
	}
	return first
}

// stop is called if admit is left before its end.
func (o *sendLimit) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admits = false
}

// count counts a message that holds held bytes if it may be sent now, or anyway is set. It is
// called without the lock.
func (o *sendLimit) count(held int, anyway bool) bool {
	if anyway {
		o.Add(held)
		return true
	}
	return o.Reserve(held)
}

// letGo releases d, which has been counted. It returns false if d is no longer the first, or was
// canceled.
func (o *sendLimit) letGo(d *sendWaiter) bool {
	o.mu.Lock()
	_, ok := o.waiting.queue.PopIf(func(first **sendWaiter, _ int) bool { return *first == d && !d.gone })
	d.counted = ok
	waits := d.waits
	o.mu.Unlock()
	if ok && waits {
		d.proceed()
	}
	return ok
}

// end releases all present and later waiters: no message leaves any more, whatever is counted.
func (o *sendLimit) end() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.admit()
}

// abandon ends the wait of d, and returns false if d has been counted.
func (o *sendLimit) abandon(d *sendWaiter) bool {
	if !o.giveUp(d) {
		return false
	}
	o.admit() // it may have blocked other messages
	return true
}

func (o *sendLimit) giveUp(d *sendWaiter) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.counted {
		return false
	}
	d.gone = true
	w := o.waiting
	if w.gone++; w.gone > leftBeforeCleaning && w.gone > w.queue.Len()/2 {
		w.queue.Filter(func(d **sendWaiter) bool { return !(*d).gone })
		w.gone = 0
	}
	return true
}

// never returns an error for a message that exceeds the hard limit alone.
func (o *sendLimit) never(held int) *codec.Abort {
	if !o.Never(held) {
		return nil
	}
	a := codec.ErrTooLarge.Withf("the message holds %d bytes, and the outbound hard limit is %d: see Limits.Outbound", held, o.Limits().Hard.Bytes)
	a.Ran = codec.NeverSent
	return a
}
