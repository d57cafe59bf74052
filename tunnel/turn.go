package tunnel

// turn is the lock of one direction of a Conn. Its holder may block, for the peer or the session. A
// goroutine that waits for the turn does so until its bound ends.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn. It returns the reason of the end of bound, if that has ended.
func (t turn) take(bound *deadlineContext) error {
	if err := bound.cause(); err != nil {
		return err
	}
	select {
	case t <- struct{}{}:
		return nil
	case <-bound.done:
		return bound.why
	}
}

// try takes the turn if it is free.
func (t turn) try() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

// await takes the turn, without a time limit.
func (t turn) await() { t <- struct{}{} }

// pass releases the turn.
func (t turn) pass() { <-t }
