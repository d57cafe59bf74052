package piping

// state says which directions of a pipe have ended and whether the pipe is over.
type state uint8

const (
	endedHere    state = 1 << iota // this side has sent its end-of-stream
	endedThere                     // the peer has
	stoppedHere                    // this side has said that it wants no more Blocks
	stoppedThere                   // the peer has
	over                           // a Close went either way; nothing more is sent or accepted
)

// event is what may happen to a pipe.
type event uint8

const (
	sendBlock event = iota
	recvBlock
	sendEnd
	recvEnd
	sendStop
	recvStop
	sendClose
	recvClose
)

// next returns the state after e, or ok == false where e is not allowed in s.
func (s state) next(e event) (_ state, ok bool) {
	if s&over != 0 {
		return s, false
	}
	switch e {
	case sendClose, recvClose:
		return s | over, true
	case sendBlock:
		return s, s&(endedHere|stoppedThere) == 0
	case recvBlock:
		return s, s&endedThere == 0
	case sendEnd:
		return s | endedHere, s&endedHere == 0
	case recvEnd:
		return s | endedThere, s&endedThere == 0
	case sendStop:
		return s | stoppedHere, s&(stoppedHere|endedThere) == 0
	case recvStop:
		return s | stoppedThere, true
	}
	return s, false
}
