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
		Granted: e.granted, Received: e.receivedLocked(), Taken: e.taken, Hold: e.hold.Bytes(),
		Waiting: e.waiting > 0, Paused: e.paused, Over: e.state&over != 0, EndedThere: e.state&endedThere != 0, Stopped: e.state&stoppedHere != 0,
		Sent: e.sent, Limit: e.limit,
	}
	a.Inbox = a.Received - a.Taken
	if r := e.rare; r != nil {
		a.Debt, a.Sheltered = r.debt, r.sheltered
		if r.left != nil {
			a.Hold += r.left.hold.Bytes()
			a.Debt += r.left.debt
		}
	}
	return a
}
