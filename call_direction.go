package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/limits"
)

// Direction is a direction of a session's messages, seen from this side.
type Direction uint8

const (
	Inbound  Direction = iota // received, and not yet taken by the application
	Outbound                  // sent, and not yet given to the Wire
)

func (d Direction) String() string {
	if d == Inbound {
		return "inbound"
	}
	return "outbound"
}

// hardLimit returns the error of a session in which c has exceeded its hard limit.
func hardLimit(d Direction, c *limits.Counter) *Abort {
	return codec.ErrHardLimit.Withf("%v: %v wait, and the limit is %v", d, c.Held(), c.Limits().Hard)
}
