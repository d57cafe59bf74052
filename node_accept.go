package asterisque

import (
	"context"
	"errors"
	"log/slog"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/callback"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// authorise calls Access.Accept for the peer.
func (c *config) authorise(ctx context.Context, p Peer) (g Grant, err error) {
	if len(p.Credential) > 0 && p.TLS == nil && !c.plainCredentials {
		return g, codec.ErrUnauthorized.Withf("a credential came over a wire without encryption: use tls://, or allow it with Access.PlainCredentials")
	}
	if c.accept != nil {
		granted, err := callback.Ask(ctx, &c.asks.accept, func() (*Grant, error) {
			granted, err := c.accept(ctx, p)
			return granted, c.refusal(&p, err)
		}, nil)
		if err != nil {
			return g, err
		}
		if granted != nil {
			g = *granted
		}
	}
	return g, c.fillIn(&g)
}

// refusal returns err, with which the application rejects the peer, as an Abort.
func (c *config) refusal(p *Peer, err error) error {
	var own *Abort
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own) && own != nil:
		return own
	}
	return unaccepted(c.log, p, err)
}

// unaccepted returns the error for a peer on which the application could not decide because of err.
func unaccepted(log *slog.Logger, p *Peer, err error) *Abort {
	id := call.NewErrorID()
	log.Warn("peer could not be checked", "id", id, "addr", p.RemoteAddr, "error", err)
	a := codec.ErrUnavailable.Withf("the peer could not be checked: internal error, id %s", id)
	a.Cause = err
	return a
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

// reach returns a Wire to the node that has the session of r, or nil if there is no such node.
func (c *config) reach(ctx context.Context, r SessionRecord, p Peer) (wire.Wire, error) {
	if c.elsewhere == nil {
		return nil, nil
	}
	w, err := callback.Ask(ctx, &c.asks.elsewhere, func() (wire.Wire, error) {
		return c.elsewhere(ctx, r, p)
	}, func(w wire.Wire) {
		if w != nil {
			w.Close()
		}
	})
	var told *Abort
	switch {
	case err == nil || errors.As(err, &told):
		return w, err
	}
	c.log.Warn("session cannot be relayed", "node", r.Node, "session", r.Session.short(), "addr", p.RemoteAddr, "error", err)
	told = codec.ErrUnavailable.Withf("the node that has the session cannot be reached")
	told.Cause = err
	return nil, told
}

// credentialFor returns the credential for a peer.
func (c *config) credentialFor(ctx context.Context, p Peer) ([]byte, error) {
	if p.TLS == nil && !c.plainCredentials {
		return nil, codec.ErrUnauthorized.Withf("the credential is not sent over a wire without encryption: use tls://, or allow it with Access.PlainCredentials")
	}
	shown, err := callback.Ask(ctx, &c.asks.credential, func() ([]byte, error) {
		return c.credential(ctx, p)
	}, nil)
	switch {
	case errors.Is(err, ErrUnavailable), errors.Is(err, ErrOverloaded), ctx.Err() != nil:
		return nil, err
	case err != nil:
		return nil, &Abort{Code: codec.Unauthorized, Message: "there is no credential", Cause: err}
	case len(shown) > message.MaxCredential:
		return nil, codec.ErrUnauthorized.Withf("the credential of %d bytes exceeds the limit of %d", len(shown), message.MaxCredential)
	}
	return shown, nil
}
