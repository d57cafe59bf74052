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
	ended   bool        // guarded by mu, as waiting: nothing leaves any more, and nobody waits
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
	proceed func() // is called when it is counted, without a lock
}

// reserve counts a message that holds so many bytes if it may be sent now. Otherwise it returns a
// place to wait at, and calls proceed when the message has been counted.
func (o *outbound) reserve(p priority.Priority, held int, proceed func()) *departure {
	if !o.queued.Load() && o.Reserve(held) {
		return nil
	}
	d := &departure{held: held, proceed: proceed}
	o.mu.Lock()
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
	w.queue.Push(f, d, held)
	ready := o.admitLocked(nil)
	if d.counted { // which is what it would have been without waiting
		d.proceed = func() {}
		d = nil
	}
	o.mu.Unlock()
	release(ready)
	return d
}

// Remove takes messages that hold so many bytes in all out of the count, and lets others go.
func (o *outbound) Remove(messages, bytes int) {
	o.Counter.Remove(messages, bytes)
	o.admit()
}

// admit lets those go for whom there is room.
func (o *outbound) admit() {
	if !o.queued.Load() {
		return
	}
	o.mu.Lock()
	ready := o.admitLocked(nil)
	o.mu.Unlock()
	release(ready)
}

// admitLocked adds those for whom there is room to ready, and counts them.
func (o *outbound) admitLocked(ready []*departure) []*departure {
	w := o.waiting
	if w == nil {
		return ready
	}
	for {
		d, ok := w.queue.PopIf(func(d **departure, _ int) bool { return (*d).gone || o.mayLocked((*d).held) })
		switch {
		case !ok:
			o.queued.Store(w.queue.Len() > 0)
			return ready
		case d.gone:
			w.gone--
		default:
			d.counted = true
			ready = append(ready, d)
		}
	}
}

// mayLocked reports whether a message that holds so many bytes may be sent now, and counts it then.
func (o *outbound) mayLocked(held int) bool {
	if o.ended {
		o.Add(held)
		return true
	}
	return o.Reserve(held)
}

// end lets all go who wait, and everybody who comes later: nothing leaves any more, whatever is
// counted.
func (o *outbound) end() {
	o.mu.Lock()
	o.ended = true
	ready := o.admitLocked(nil)
	o.mu.Unlock()
	release(ready)
}

func release(ready []*departure) {
	for _, d := range ready {
		d.proceed()
	}
}

// abandon ends the wait of d, and reports false if it has been counted.
func (o *outbound) abandon(d *departure) bool {
	o.mu.Lock()
	if d.counted {
		o.mu.Unlock()
		return false
	}
	d.gone = true
	w := o.waiting
	if w.gone++; w.gone > tolerated && w.gone > w.queue.Len()/2 {
		w.queue.Filter(func(d **departure) bool { return !(*d).gone })
		w.gone = 0
	}
	ready := o.admitLocked(nil) // it may have kept others waiting
	o.mu.Unlock()
	release(ready)
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
