package asterisque

import "fmt"

// ConnectionState says whether a [Connection] has a session for new calls.
//
//	connecting --sessionUp--> Connected --sessionDown--> Reconnecting
//	    |                      |     ^                     |     |
//	    |                      |     +------sessionUp------+     |
//	    +----------------------+----------------+----------------+
//	                           connectionOver   |
//	                                            v
//	                                           Lost
type ConnectionState uint8

// connecting is the state before the first session.
const connecting ConnectionState = 0

const (
	Connected ConnectionState = 1
	// there is no session for new calls: they wait, or fail at once, see WithFailFast
	Reconnecting ConnectionState = 2
	Lost         ConnectionState = 3 // for good
)

func (s ConnectionState) String() string {
	switch s {
	case connecting:
		return "connecting"
	case Connected:
		return "connected"
	case Reconnecting:
		return "reconnecting"
	case Lost:
		return "lost"
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// connectionEvent is what happens to a connection.
type connectionEvent uint8

const (
	sessionUp      connectionEvent = iota // there is a session for new calls
	sessionDown                           // its Wire is lost, it is over, or its peer shuts it down
	connectionOver                        // it was closed, or nothing will come of connecting again
)

// next returns the state after e. It reports false, and returns s, where e cannot be.
func (s ConnectionState) next(e connectionEvent) (_ ConnectionState, ok bool) {
	switch {
	case s == Lost:
		return s, false
	case e == connectionOver:
		return Lost, true
	case e == sessionUp && s != Connected:
		return Connected, true
	case e == sessionDown && s == Connected:
		return Reconnecting, true
	}
	return s, false
}
