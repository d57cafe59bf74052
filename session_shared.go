package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/carrier"
)

// shared is the common state of the sessions of a node. The node makes it once, and sessions have
// no other access to their node.
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
