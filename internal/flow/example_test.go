package flow_test

import (
	"fmt"

	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
)

// A Counter can be used alone, to bound any queue. A sender that can wait reserves, and stops at
// the soft limit. A sender that cannot wait adds, and ends beyond the hard limit.
func ExampleCounter() {
	marks, err := limits.Limits{
		Soft: limits.Amount{Messages: 4},
		Hard: limits.Amount{Messages: 6},
	}.Check()
	if err != nil {
		fmt.Println(err)
		return
	}
	c := flow.NewCounter(&marks, func(s limits.State) { fmt.Println("now", s) })

	for c.TryAcquire(100) { // a message of 100 bytes goes into the queue
	}
	fmt.Println("waiting:", c.Held())

	room := c.Room() // closed when half of the queue has been taken
	c.Remove(2, 200)
	<-room

	for c.Add(100) != limits.Hard {
	}
	fmt.Println("given up:", c.Held())
	// Output:
	// now soft
	// waiting: 4 messages, 400 bytes
	// now ready
	// now soft
	// now hard
	// given up: 7 messages, 700 bytes
}
