package piping

// Account is what one end of a pipe has promised and holds, and what it was promised.
type Account struct {
	Granted, Received, Taken uint64 // of what arrives
	Hold                     uint64 // its window
	Debt, Sheltered          int    // what it holds of the room for large Blocks, and elsewhere
	Inbox                    uint64 // cost of what waits to be taken
	Waiting                  bool   // somebody receives
	Paused                   bool
	Over, EndedThere         bool
	Stopped                  bool // this side wants no more

	Sent, Limit uint64 // of what is sent
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
	if s := e.in.special; s != nil {
		a.Debt, a.Sheltered = s.wish.debt, s.wish.sheltered
		if s.left != nil {
			a.Hold += s.left.hold.Bytes()
			a.Debt += s.left.debt
		}
	}
	return a
}
