package piping

// endState records which directions of a pipe have ended, and whether the pipe is over.
//
//	                 ┌─ sendEnd ──> endedHere ────┐
//	                 ├─ recvStop ─> stoppedThere ─┤  no Block may be sent
//	open ─ each once ┤                            ├─ sendClose, recvClose ─> over
//	                 ├─ recvEnd ──> endedThere ───┤  no Block may come
//	                 └─ sendStop ─> stoppedHere ──┘  Blocks that come are ignored
//
// The four in the middle add up. An open pipe may be over at once.
type endState uint8

const (
	endedHere    endState = 1 << iota // this side has sent its end-of-stream
	endedThere                        // the peer has
	stoppedHere                       // this side has sent a Stop: it accepts no more Blocks
	stoppedThere                      // the peer has
	// a Close was sent or received; nothing more is sent or accepted
	over
	skips        // a Skip waits to depart, whatever else happens
	resultTaken  // the application has the result
	contextEnded // the context of Open has ended after the call
)

// endEvent is an event of a pipe.
type endEvent uint8

const (
	sendBlock endEvent = iota
	recvBlock
	sendEnd
	recvEnd
	sendStop
	recvStop
	sendClose
	recvClose
)

// next returns the state after e. ok is false if e is not allowed in s.
func (s endState) next(e endEvent) (_ endState, ok bool) {
	if s.over() {
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

// over reports whether the call is over.
func (s endState) over() bool { return s&over != 0 }

// wants reports whether this side expects Blocks of the peer and accepts them.
func (s endState) wants() bool { return s&(over|stoppedHere|endedThere) == 0 }
