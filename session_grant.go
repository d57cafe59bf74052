package asterisque

import (
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// Grant is the permission for one peer; see [Access].Accept. A zero field keeps the node's default.
type Grant struct {
	// identity of the peer, for logs and for handlers: see Peer.Subject
	Subject     string
	Service     *Service           // offered to the peer
	Describe    bool               // permits Describe, if the Service restricts it by WithGrantOnly
	Health      bool               // the same for CheckHealth and WatchHealth
	Inbound     limits.Limits      // for messages that the application has not taken
	Outbound    limits.Limits      // for messages that have not been given to the Wire
	MaxPriority *priority.Priority // the highest priority of the peer's calls

	inbound, outbound *limits.Limits // in force; shared by many sessions, as plan
	plan              *limits.Plan   // granted to the peer
}

// limits returns the limits in force.
func (g *Grant) limits() grantedLimits { return grantedLimits{*g.inbound, *g.outbound} }

// offer returns what the peer may call.
func (g *Grant) offer() call.Offer {
	return call.Offer{Functions: g.Service.functions(), Granted: uint8(g.standards()), MaxPriority: *g.MaxPriority}
}

// standards returns the restricted standard functions that the peer may call.
func (g *Grant) standards() (granted standardFunctions) {
	if g.Describe {
		granted |= grantDescribe
	}
	if g.Health {
		granted |= grantHealth
	}
	return granted
}

// grantedLimits are the limits in force for a peer.
type grantedLimits struct{ inbound, outbound limits.Limits }
