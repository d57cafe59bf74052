package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/carrier"
)

// shared is what the sessions of a node have in common. The node makes it once, and no session
// knows more of its node than this.
type shared struct {
	carriers carrier.Settings // these are fixed
	records  records
	lookout  carrier.Lookout
	common   // these lock themselves
	staff
	owners  owners
	budget  budget
	aways   aways
	reports reports
}

// sessionHolder is who has made a session, and is told what becomes of it.
type sessionHolder interface {
	// sessionChanged is called when a session has lost its Wire, and when its peer drains it.
	sessionChanged()

	// sessionEnded is called at the very end of s.
	sessionEnded(s *Session)
}
