package piping

// Account is the credit and the room of one end of a pipe.
type Account struct {
	Granted, Received, Taken uint64 // of the receiving direction
	Hold                     uint64 // its window
	Debt, Reserved           int    // bytes held for large Blocks, and for running calls
	Inbox                    uint64 // cost of the Blocks in the inbox
	Waiting                  bool   // a receiver waits
	Paused                   bool
	Over, EndedThere         bool
	Stopped                  bool // this side accepts no more Blocks

	Sent, Limit uint64 // of the sending direction
}

// Account returns the account of e.
func (e *End) Account() Account {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := Account{
		Granted: e.in.granted, Received: e.in.received(e.terms), Taken: e.in.taken, Hold: e.in.hold.Bytes(),
		Waiting: e.in.waiting > 0, Paused: e.in.paused,
		Over: e.state.over(), EndedThere: e.state&endedThere != 0, Stopped: e.state&stoppedHere != 0,
		Sent: e.out.sent, Limit: e.out.limit,
	}
	a.Inbox = a.Received - a.Taken
	if s := e.in.extras; s != nil {
		a.Debt, a.Reserved = s.arriving.debt, s.arriving.reserved
	}
	return a
}

// Left returns the number of ended pipes with untaken Blocks.
func (t *Terms) Left() int {
	l := t.left.Load()
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list.Len()
}
