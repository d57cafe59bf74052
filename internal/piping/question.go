package piping

// question is the state of the Ask for a Block that does not fit into the window.
//
//	idle ─askerComes─> wanted ─placeTaken─> placed ─askDeparts─> standing ─allowComes─> allowed
//	                    ^  ^                  │                   │    │
//	                    │  └── placeSkipped ──┘                   │    │ blockSent, askerLeaves
//	                    └────── creditComes, allowDeclined ───────┘    v
//	idle <───────────────────── creditComes, allowDeclined ───────── orphaned
//
// An orphaned question becomes standing again when another asker comes. By blockSent or
// askerLeaves, a question that is wanted, placed or allowed becomes idle.
type question uint8

const (
	idle     question = iota // there is no asker
	wanted                   // there is an asker; its Ask waits for the Blocks under way
	placed                   // the Ask has its place after all sent messages, and has not departed
	standing                 // the Ask has departed, and the asker waits for the answer
	orphaned                 // the Ask has departed, and the asker has left
	allowed                  // the peer has allowed the Block of the asker
)

// step is an event of a question.
type step uint8

const (
	askerComes    step = iota // a sender becomes the asker
	placeTaken                // the Ask gets its place
	placeSkipped              // the place is reached, and the Block fits by now
	askDeparts                // the place is reached
	creditComes               // the peer answers with a Credit
	allowComes                // the peer answers with an Allow for the Block of the asker
	allowDeclined             // the peer answers with an Allow without a Block for it
	blockSent                 // the Block of the asker is sent
	askerLeaves               // the asker does not send
)

// next returns the question after s. ok is false if s is not possible.
func (q question) next(s step) (_ question, ok bool) {
	switch {
	case s == askerComes && q == orphaned:
		return standing, true
	case s == askerComes:
		return wanted, q == idle
	case s == placeTaken:
		return placed, q == wanted
	case s == placeSkipped:
		return wanted, q == placed
	case s == askDeparts:
		return standing, q == placed
	case s == allowComes:
		return allowed, q == standing
	case s == creditComes || s == allowDeclined:
		if q == orphaned {
			return idle, true
		}
		return wanted, q == standing
	case s == blockSent || s == askerLeaves:
		if q == standing {
			return orphaned, true
		}
		return idle, q.hasAsker()
	}
	return q, false
}

// hasAsker reports whether there is an asker. Other senders wait behind it.
func (q question) hasAsker() bool { return q != idle && q != orphaned }

// departed reports whether an Ask has departed that the peer has not answered yet.
func (q question) departed() bool { return q == standing || q == orphaned }
