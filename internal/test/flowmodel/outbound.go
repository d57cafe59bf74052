package flowmodel

import (
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// heldMessage is the count of a waiting message besides its content.
const heldMessage = flow.LeastOverhead

// outbound counts the messages that wait to be written, and queues those that wait to be counted.
type outbound struct{ *flow.Counter }

// departure is a message that waits to be counted.
type departure struct {
	flow.Waiter
	ready bool // it is counted
}

func (o *outbound) init(l *limits.Limits, share float64) {
	o.Counter = flow.NewCounter(l, nil)
	o.Share(share)
}

// reserve counts a message, or returns a place in the queue; leave, which may be nil, is called
// when it is counted.
func (o *outbound) reserve(p priority.Priority, held int, leave func()) *departure {
	d := new(departure)
	d.Waiter = flow.Waiter{Priority: p, Bytes: held, Granted: func(bool) {
		d.ready = true
		if leave != nil {
			leave()
		}
	}}
	if o.Acquire(&d.Waiter) {
		return nil
	}
	return d
}

// abandon ends the wait of d, or removes d from the count.
func (o *outbound) abandon(d *departure) { o.Leave(&d.Waiter) }

// remove removes a message from the count.
func (o *outbound) remove(held int) { o.Remove(1, held) }
