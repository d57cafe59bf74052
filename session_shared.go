package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/dispatch"
	"github.com/asterisque-go/asterisque/internal/resume"
)

// sharedState is the common state of the sessions of a node. The node makes it once, and sessions
// have no other access to their node.
type sharedState struct {
	carriers  carrier.Settings // these are fixed
	records   repositoryRecords
	keepalive carrier.KeepaliveScheduler
	// call through the interceptors of the node, for calls of this side and of the peer; nil
	// without; fixed
	outward, inward Next

	call.Common // these lock themselves
	scheduler   dispatch.Scheduler
	suspended   resume.Sessions
	reports     callback.Reports
}
