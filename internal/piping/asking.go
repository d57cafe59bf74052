package piping

// asking is what this side asks the peer for. A Block that does not fit into its window asks. The
// sender says with an Ask up to which total it would send, and keeps what comes after in its order.
// The receiver answers with a Credit, or with an Allow when its application waits for that Block.
// So a large Block is taken on arrival, and a reader that sleeps holds no room with it.
//
// Among several senders one asks. The others wait behind it, even if their Blocks would fit. What
// an Ask says is known only when its place is reached, and the last place speaks for all before it:
// it asks, or it gives back what was allowed and is not used, or nothing is left to be said.
type asking struct {
	question question
	refund   refund
	need     uint64 // the cost of the asker's Block
	asked    uint64 // total of the Ask that has departed; 0: none
	since    uint64 // and what had been sent before it
	grant    uint64 // total of the Allow that has come for the asker; 0: none
	places   int    // for Asks, in the order of the pipe, that have not been reached
	answer   signal // to the asker
}

// refund says whether an Allow has to be given back. The Ask that departs next gives it back as
// well.
type refund uint8

const (
	noRefund   refund = iota
	refundable        // a Block that may be dropped yet has used an Allow
	refundDue
)

// step takes s. A step that is not possible changes nothing.
func (a *asking) step(s step) {
	if next, ok := a.question.next(s); ok {
		a.question = next
	}
}

// begin makes a sender whose Block costs n the asker, unless there is one.
func (a *asking) begin(n uint64) bool {
	if a.question.hasAsker() {
		return false
	}
	a.step(askerComes)
	a.need = n
	return true
}

// place reports whether a place for the Ask of the asker has to be taken now. It is behind all
// Blocks that are counted as sent: otherwise it would take back what one of them was allowed, or
// what it is allowed itself would be for one of them. If some are under way, the last of them wakes
// the asker.
func (a *asking) place(u *underWay) bool {
	if a.question != wanted || !u.noneLocked() {
		return false
	}
	a.step(placeTaken)
	a.places++
	return true
}

// rests reports whether nothing is asked, and nothing has to be given back.
func (a *asking) rests() bool {
	return a.question == idle && a.places == 0 && a.refund != refundDue
}

// use is called when the Block of the asker is sent. An Allow is for the next Block, whatever that
// costs.
func (a *asking) use() {
	if a.question == allowed {
		a.grant, a.refund = 0, refundable
	}
	a.step(blockSent)
}

// end is called when the asker does not send. It reports whether a place has to be taken, to give
// an Allow back.
func (a *asking) end() bool {
	unused := a.question == allowed
	a.step(askerLeaves)
	if unused {
		a.grant = 0
		a.giveBack()
	}
	return unused
}

// drop is called when a Block was counted as sent, and is not. It reports whether a place has to be
// taken, to give an Allow back.
func (a *asking) drop() bool {
	used := a.refund == refundable
	if used {
		a.giveBack()
	}
	return used
}

// giveBack lets an Allow be given back, for which the caller takes a place.
func (a *asking) giveBack() {
	a.refund = refundDue
	a.places++
}

// reach is called when the last place is reached, with what has departed before it and up to which
// total this side may send. It returns what the Ask says, or false if it is not to be sent. It says
// no more than what has departed if it only gives an Allow back.
func (a *asking) reach(departed, limit uint64) (total uint64, ok bool) {
	if a.question == placed && departed+a.need > limit {
		a.step(askDeparts)
		a.asked, a.since, a.refund = departed+a.need, departed, noRefund
		return a.asked, true
	}
	a.step(placeSkipped) // credit came, or a Block was dropped: the asker goes on without
	if a.refund != refundDue {
		return 0, false
	}
	a.refund = noRefund
	return departed, true
}

// credit is called when the peer has granted what the Ask that has departed is for.
func (a *asking) credit() {
	a.step(creditComes)
	a.asked = 0
}

// allow is called when the peer has allowed the next Block, which follows after sent, to reach
// total, which is no less than an Ask that has departed is for. It reports whether a place has to
// be taken, to give that back.
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
