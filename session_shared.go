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
