package asterisque

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
