package pipe

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
	p := (*Pipe)(e)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := Account{
		Granted: p.granted, Received: p.receivedLocked(), Taken: p.taken, Hold: p.hold.Bytes(),
		Waiting: p.waiting > 0, Paused: p.paused, Over: p.state&over != 0, EndedThere: p.state&endedThere != 0, Stopped: p.state&stoppedHere != 0,
		Sent: p.sent, Limit: p.limit,
	}
	a.Inbox = a.Received - a.Taken
	if r := p.rare; r != nil {
		a.Debt, a.Sheltered = r.debt, r.sheltered
		if r.left != nil {
			a.Hold += r.left.hold.Bytes()
			a.Debt += r.left.debt
		}
	}
	return a
}
