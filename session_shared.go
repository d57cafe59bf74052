package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/carrier"
)

// sharedState is the common state of the sessions of a node. The node makes it once, and sessions
// have no other access to their node.
type sharedState struct {
	carriers  carrier.Settings // these are fixed
	records   repositoryRecords
	keepalive carrier.KeepaliveScheduler
	nodeCalls // these lock themselves
	scheduler
	owners    quotaOwners
	budget    memoryBudget
	suspended suspendedSessions
	reports   callbackReports
}
