package piping

import "github.com/asterisque-go/asterisque/limits"

// after is what has to be done when the lock of an End is free again.
type after struct {
	claims          []*limits.Claim // that were granted
	announce        bool            // the peer has to be told something
	messages, bytes int             // that were taken
	shelter         int             // bytes of shelter to be given back
	abort           bool            // nobody has room for what the peer was allowed
	show            bool            // those around the End want to see the outcome
	begins, ends    *leftover
}

// grant has the claims of others granted.
func (a *after) grant(claims []*limits.Claim) {
	if len(claims) > 0 {
		a.claims = append(a.claims, claims...)
	}
}

// do does all but the abort. It is called without a lock.
func (a *after) do(t *Terms, port Port) {
	if a.messages > 0 {
		t.Ledger.Taken(a.messages, a.bytes)
	}
	if a.announce {
		port.Announce()
	}
	if a.shelter > 0 {
		t.Ledger.Shelter(-a.shelter)
	}
	if a.begins != nil {
		a.begins.begin()
	}
	if a.ends != nil {
		a.ends.end()
	}
	limits.Grant(a.claims)
}
