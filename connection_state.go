package asterisque

import "fmt"

// ConnectionState reports whether a [Connection] has a session for new calls.
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
	// no session for new calls: they wait, or fail at once, see WithFailFast
	Reconnecting ConnectionState = 2
	Lost         ConnectionState = 3 // final
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

// connectionEvent is an event of a connection.
type connectionEvent uint8

const (
	sessionUp      connectionEvent = iota // there is a session for new calls
	sessionDown                           // it is lost, has ended, or is shut down
	connectionOver                        // the connection was closed, or has failed for good
)

// next returns the state after e. It returns s and false for an impossible e.
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
