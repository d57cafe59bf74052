package asterisque

import (
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/priority"
)

// Grant is what the accepting side allows one peer; see [Access].Accept. A zero field is as the
// node has it for all.
type Grant struct {
	// who the peer turned out to be, for logs and for handlers: see Peer.Subject
	Subject     string
	Service     *Service           // what it is offered
	Describe    bool               // it may call Describe, if the Service has that by WithGrantOnly
	Health      bool               // the same of CheckHealth and WatchHealth
	Inbound     limits.Limits      // of what it sends and the application has not taken
	Outbound    limits.Limits      // of what it is sent and has not been given to the Wire
	MaxPriority *priority.Priority // the highest that its calls get

	inbound, outbound *limits.Limits // what is in force; shared by many, as plan
	plan              *limits.Plan   // what is promised to it
}

// limits returns those in force.
func (g *Grant) limits() grantedLimits { return grantedLimits{*g.inbound, *g.outbound} }

// standards returns the standard functions that a peer may call which are only for some.
func (g *Grant) standards() (granted standards) {
	if g.Describe {
		granted |= grantDescribe
	}
	if g.Health {
		granted |= grantHealth
	}
	return granted
}

// grantedLimits are the limits that a Grant has set.
type grantedLimits struct{ inbound, outbound limits.Limits }
