package piping

// asking is the request of this side for more credit. A sender asks for a Block that does not fit
// into its window. Its Ask contains the total up to which it would send, and later messages keep
// their order behind it. The receiver answers with a Credit, or with an Allow when its application
// waits for that Block. So a large Block is taken on arrival, and a slow reader reserves no room
// for it.
//
// Only one of several senders asks. The other senders wait behind it, even if their Blocks would
// fit. The content of an Ask is determined when its place in the order is reached. The last place
// stands for all places before it: it asks, or it returns an unused Allow, or nothing is left to be
// sent.
type asking struct {
	question question
	refund   refund
	need     uint64 // the cost of the asker's Block
	asked    uint64 // total of the Ask that was sent; 0: none
	since    uint64 // cost sent before that Ask
	grant    uint64 // total of the Allow that was received for the asker; 0: none
	places   int    // places reserved for Asks, in the order of the pipe, and not yet reached
	answer   signal // wakes the asker
}

// refund is the state of an Allow that may have to be returned. The next Ask that is sent also
// returns the Allow.
type refund uint8

const (
	noRefund   refund = iota
	refundable        // a Block that may still be dropped has used an Allow
	refundDue
)

// step applies s. A step that is not possible has no effect.
func (a *asking) step(s step) {
	if next, ok := a.question.next(s); ok {
		a.question = next
	}
}

// begin makes the sender of a Block of cost n the asker, unless there is one.
func (a *asking) begin(n uint64) bool {
	if a.question.hasAsker() {
		return false
	}
	a.step(askerComes)
	a.need = n
	return true
}

// place reports whether a place for the Ask of the asker has to be reserved now. It has to be
// behind all Blocks that are counted as sent: otherwise it would return the Allow of one of them,
// or one of them would use the Allow for the Ask. If some of these Blocks are under way, the last
// of them wakes the asker.
func (a *asking) place(u *inflightBlocks) bool {
	if a.question != wanted || !u.noneLocked() {
		return false
	}
	a.step(placeTaken)
	a.places++
	return true
}

// rests reports whether there is neither a request nor an Allow to return.
func (a *asking) rests() bool {
	return a.question == idle && a.places == 0 && a.refund != refundDue
}

// use is called when the Block of the asker is sent. An Allow is for the next Block, regardless of
// its cost.
func (a *asking) use() {
	if a.question == allowed {
		a.grant, a.refund = 0, refundable
	}
	a.step(blockSent)
}

// end is called when the asker does not send. It reports whether a place has to be reserved to
// return an Allow.
func (a *asking) end() bool {
	unused := a.question == allowed
	a.step(askerLeaves)
	if unused {
		a.grant = 0
		a.giveBack()
	}
	return unused
}

// drop is called when a Block that was counted as sent is not sent. It reports whether a place has
// to be reserved to return an Allow.
func (a *asking) drop() bool {
	used := a.refund == refundable
	if used {
		a.giveBack()
	}
	return used
}

// giveBack marks an Allow for return. The caller reserves a place.
func (a *asking) giveBack() {
	a.refund = refundDue
	a.places++
}

// reach is called when the last place is reached, with the cost sent before it and the limit of
// this side. It returns the total of the Ask, or false if no Ask is to be sent. A total equal to
// departed only returns an Allow.
func (a *asking) reach(departed, limit uint64) (total uint64, ok bool) {
	if a.question == placed && departed+a.need > limit {
		a.step(askDeparts)
		a.asked, a.since, a.refund = departed+a.need, departed, noRefund
		return a.asked, true
	}
	a.step(placeSkipped) // credit came, or a Block was dropped: the asker needs no Ask
	if a.refund != refundDue {
		return 0, false
	}
	a.refund = noRefund
	return departed, true
}

// credit is called when the peer has granted the credit that the sent Ask requested.
func (a *asking) credit() {
	a.step(creditComes)
	a.asked = 0
}

// allow is called when the peer has allowed the next Block, the one after sent, to reach total.
// total is no less than that of the sent Ask. allow reports whether a place has to be reserved to
// return the Allow.
func (a *asking) allow(sent, total uint64) (back bool) {
	a.asked = 0
	if a.question == standing && sent == a.since && sent+a.need <= total {
		a.step(allowComes)
		a.grant = total
		return false
	}
	a.step(allowDeclined)
	a.giveBack()
	return true
}
