package asterisque

import (
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// outbound counts what is outbound in a session, and knows who waits because that is at its soft
// limit. Messages wait by priority, with a share for the lower ones as in the outbox, and among
// equals in their order: none overtakes an earlier one of the same priority or a higher one.
//
// While nobody waits, counting takes no lock. Whoever takes part in waiting sets queued before it
// looks at the count, and whoever lowers the count looks at queued after that: one of the two sees
// the other.
type outbound struct {
	*limits.Counter
	share float64 // of lower priorities; fixed

	queued  atomic.Bool // somebody waits; written with mu held
	mu      sync.Mutex
	ended   bool        // guarded by mu, as all below: nothing leaves any more, and nobody waits
	admits  bool        // a goroutine is in admit
	again   bool        // somebody else would be, and that goroutine has to look once more
	waiting *departures // nil until somebody waits
}

// departures are those who wait.
type departures struct {
	queue priority.Queue[*departure]
	flows map[priority.Priority]*priority.Flow[*departure] // one for each priority
	gone  int                                              // of queue, how many have given up
}

// departure is a message that waits.
type departure struct {
	held    int
	gone    bool   // its sender has given up; guarded by the lock of its outbound, as counted
	counted bool   // it need not wait any more
	waits   bool   // its sender does, so that proceed is to be called
	proceed func() // is called when it is counted, without a lock; fixed
}

// reserve counts a message that holds so many bytes if it may be sent now. Otherwise it returns a
// place to wait at, and calls proceed when the message has been counted.
func (o *outbound) reserve(p priority.Priority, held int, proceed func()) *departure {
	if !o.queued.Load() && o.Reserve(held) {
		return nil
	}
	d := &departure{held: held, proceed: proceed}
	o.queue(p, d)
	o.admit()
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.counted { // which is what it would have been without waiting
		return nil
	}
	d.waits = true
	return d
}

// queue puts d behind those of its priority.
func (o *outbound) queue(p priority.Priority, d *departure) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queued.Store(true)
	if o.waiting == nil {
		o.waiting = &departures{flows: make(map[priority.Priority]*priority.Flow[*departure])}
		o.waiting.queue.Guard(o.share)
	}
	w := o.waiting
	f := w.flows[p]
	if f == nil {
		f = &priority.Flow[*departure]{Priority: p}
		w.flows[p] = f
	}
	w.queue.Push(f, d, d.held)
}

// Remove takes messages that hold so many bytes in all out of the count, and lets others go.
func (o *outbound) Remove(messages, bytes int) {
	o.Counter.Remove(messages, bytes)
	o.admit()
}

// admit lets those go for whom there is room. One goroutine at a time does so. It counts without
// the lock: the Counter reports on that goroutine that a limit is reached, and then messages may be
// dropped, which are removed from the count here.
func (o *outbound) admit() {
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

// begin returns who waits first, unless somebody else is in admit already, or nobody waits. anyway
// says that there need not be room.
func (o *outbound) begin() (d *departure, anyway bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.admits {
		o.again = true
		return nil, false
	}
	o.admits = true
	return o.nextLocked(), o.ended
}

// next is begin for whoever is in admit. ok says that there was room for the last one: if there was
// none, and nobody has asked to look again, the others wait on.
func (o *outbound) next(ok bool) (d *departure, anyway bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !ok && !o.again {
		o.admits = false
		return nil, false
	}
	return o.nextLocked(), o.ended
}

// nextLocked returns who waits first, or nil if nobody does, and then nobody is in admit any more.
func (o *outbound) nextLocked() (first *departure) {
	o.again = false
	w := o.waiting
	isGone := func(d **departure, _ int) bool { first = *d; return first.gone }
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
func (o *outbound) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admits = false
}

// count counts a message that holds so many bytes if it may be sent now, or anyway. It is called
// without the lock.
func (o *outbound) count(held int, anyway bool) bool {
	if anyway {
		o.Add(held)
		return true
	}
	return o.Reserve(held)
}

// letGo lets d go, which has been counted. It reports false if d is not the first any more, or was
// given up.
func (o *outbound) letGo(d *departure) bool {
	o.mu.Lock()
	_, ok := o.waiting.queue.PopIf(func(first **departure, _ int) bool { return *first == d && !d.gone })
	d.counted = ok
	waits := d.waits
	o.mu.Unlock()
	if ok && waits {
		d.proceed()
	}
	return ok
}

// end lets all go who wait, and everybody who comes later: nothing leaves any more, whatever is
// counted.
func (o *outbound) end() {
	o.mu.Lock()
	o.ended = true
	o.mu.Unlock()
	o.admit()
}

// abandon ends the wait of d, and reports false if it has been counted.
func (o *outbound) abandon(d *departure) bool {
	if !o.giveUp(d) {
		return false
	}
	o.admit() // it may have kept others waiting
	return true
}

func (o *outbound) giveUp(d *departure) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if d.counted {
		return false
	}
	d.gone = true
	w := o.waiting
	if w.gone++; w.gone > tolerated && w.gone > w.queue.Len()/2 {
		w.queue.Filter(func(d **departure) bool { return !(*d).gone })
		w.gone = 0
	}
	return true
}

// never returns an error for a message that is beyond the hard limit by itself.
func (o *outbound) never(held int) *Abort {
	if !o.Never(held) {
		return nil
	}
	a := codec.ErrTooLarge.Withf("the message holds %d bytes, and the outbound hard limit is %d: see Limits.Outbound", held, o.Limits().Hard.Bytes)
	a.Ran = codec.NeverSent
	return a
}
