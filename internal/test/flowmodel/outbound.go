package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// heldMessage is the count of a waiting message besides its content.
const heldMessage = flow.LeastOverhead

// outbound counts the messages that wait to be written, and queues those that wait to be counted.
type outbound struct {
	*flow.Counter
	waiting priority.Queue[*departure]
	flows   [3]priority.Flow[*departure]
}

// departure is a message that waits to be counted.
type departure struct {
	held  int
	ready bool // it is counted
	gone  bool
	leave func() // called when it is ready; may be nil
}

func (o *outbound) init(l *limits.Limits, share float64) {
	o.Counter = flow.NewCounter(l, nil)
	o.waiting.Guard(share)
	for p := priority.Priority(-1); p <= 1; p++ {
		o.flows[at(p)].Priority = p
	}
}

// reserve counts a message, or returns a place in the queue.
func (o *outbound) reserve(p priority.Priority, held int, leave func()) *departure {
	if o.waiting.Len() == 0 && o.Reserve(held) {
		return nil
	}
	d := &departure{held: held}
	o.waiting.Push(&o.flows[at(p)], d, held)
	o.admit()
	if d.ready {
		return nil
	}
	d.leave = leave
	return d
}

// admit counts the queued messages for which there is room.
func (o *outbound) admit() {
	may := func(d **departure, _ int) bool { return (*d).gone || o.Reserve((*d).held) }
	for {
		d, ok := o.waiting.PopIf(may)
		switch {
		case !ok:
			return
		case d.gone:
			continue
		}
		d.ready = true
		if d.leave != nil {
			d.leave()
		}
	}
}

// abandon ends the wait of d, or removes d from the count.
func (o *outbound) abandon(d *departure) {
	d.gone = true
	if d.ready {
		o.remove(d.held)
		return
	}
	o.admit()
}

// remove removes a message from the count, and admits waiting messages.
func (o *outbound) remove(held int) {
	o.Remove(1, held)
	if o.waiting.Len() > 0 {
		o.admit()
	}
}
