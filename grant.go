package asterisque

import (
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/flow"
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
	plan              *flow.Plan     // granted to the peer
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

// fillIn replaces the zero fields of g by the defaults of the node.
func (c *config) fillIn(g *Grant) (err error) {
	if g.Service == nil {
		g.Service = c.service
		g.Service.serve("by the node that was made", c.made)
	} else {
		g.Service.serve("granted to a peer by the function of Access.Accept", beginOf(c.accept))
	}
	if g.MaxPriority == nil {
		g.MaxPriority = &c.highest
	}
	g.inbound, g.outbound, g.plan = &c.inbound, &c.outbound, &c.plan
	if g.Inbound != (limits.Limits{}) {
		err = c.ownInbound(g)
	}
	if err == nil && g.Outbound != (limits.Limits{}) {
		var own limits.Limits
		own, err = g.Outbound.Check()
		g.outbound = &own
	}
	if err != nil {
		return codec.ErrUnavailable.Withf("what the application grants this peer does not fit: %v", err)
	}
	return nil
}

// ownInbound derives the plan from the inbound limits of this peer.
func (c *config) ownInbound(g *Grant) error {
	own, err := g.Inbound.Check()
	if err != nil {
		return err
	}
	plan, err := c.planFor(own)
	g.inbound, g.plan = &own, &plan
	return err
}

// ownGrant is the grant for a peer that this side has dialled.
func (c *config) ownGrant() (g Grant) {
	c.fillIn(&g) // valid: NewNode has checked it
	return g
}
