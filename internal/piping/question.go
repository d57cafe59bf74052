package piping

// question is how far the Ask of a sender has got whose Block does not fit into the window.
//
//	idle ─askerComes─> wanted ─placeTaken─> placed ─askDeparts─> standing ─allowComes─> allowed
//	                    ^  ^                  │                   │    │
//	                    │  └── placeSkipped ──┘                   │    │ blockSent, askerLeaves
//	                    └────── creditComes, allowDeclined ───────┘    v
//	idle <───────────────────── creditComes, allowDeclined ───────── orphaned
//
// An orphaned question becomes standing again when another asker comes. With blockSent and
// askerLeaves, one that is wanted, placed or allowed becomes idle.
type question uint8

const (
	idle     question = iota // nobody asks
	wanted                   // there is an asker; its Ask comes behind what is under way
	placed                   // the Ask has its place behind what was sent; it has not departed
	standing                 // the Ask has departed, and the asker waits for the answer
	orphaned                 // the Ask has departed, and nobody waits for the answer
	allowed                  // the peer has allowed the Block of the asker
)

// step is what may happen to a question.
type step uint8

const (
	askerComes    step = iota // a sender becomes the asker
	placeTaken                // the Ask gets its place
	placeSkipped              // the place is reached, and the Block fits by now
	askDeparts                // the place is reached
	creditComes               // the peer answers with a Credit
	allowComes                // the peer answers with an Allow, which is for the Block of the asker
	allowDeclined             // the peer answers with an Allow, for which there is no Block
	blockSent                 // the Block of the asker is sent
	askerLeaves               // the asker does not send
)

// next returns the question after s, or ok == false where s is not possible.
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

// departed reports whether an Ask has departed that the peer has not answered.
func (q question) departed() bool { return q == standing || q == orphaned }
