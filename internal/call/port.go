package call

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/piping"
	"github.com/asterisque-go/asterisque/limits"
)

// inboundPort is a call of the peer for its pipe: it implements piping.Port, mostly by the
// transport of the call.
type inboundPort struct{ c *Inbound }

// Close implements piping.Port.
func (p inboundPort) Close(result []byte, abort *codec.Abort) { response(p).close(result, abort) }

// Send implements piping.Port.
func (p inboundPort) Send(ctx context.Context, b piping.Outgoing) error {
	return p.c.transport.Send(ctx, b)
}

// Post implements piping.Port.
func (p inboundPort) Post(b piping.Outgoing) (limits.State, error) { return p.c.transport.Post(b) }

// Thin implements piping.Port.
func (p inboundPort) Thin(b *piping.Outgoing) (dropped bool) { return p.c.transport.Thin(b) }

// Expire implements piping.Port.
func (p inboundPort) Expire(b *piping.Outgoing) { p.c.transport.Expire(b) }

// CloseSend implements piping.Port.
func (p inboundPort) CloseSend() error { return p.c.transport.CloseSend() }

// Announce implements piping.Port.
func (p inboundPort) Announce() { p.c.transport.Announce() }

// Abandon implements piping.Port.
func (p inboundPort) Abandon(whole int) { p.c.transport.Abandon(whole) }

// Watch implements piping.Port.
func (p inboundPort) Watch() { p.c.transport.Watch() }

// Skip implements piping.Port.
func (p inboundPort) Skip(stays uint64) { p.c.transport.Skip(stays) }

// Stop implements piping.Port.
func (p inboundPort) Stop(arriving bool) { p.c.transport.Stop(arriving) }

// Outlive implements piping.Port: the end of a handler's call leaves it no Blocks.
func (p inboundPort) Outlive(func()) (stop func() bool) { return nil }

// MaxBlock implements piping.Port.
func (p inboundPort) MaxBlock() int { return p.c.transport.MaxBlock() }

// Owns implements piping.Port.
func (p inboundPort) Owns(ctx context.Context) bool { return ctx == context.Context(p.c) }

// Misbehaved implements piping.Port.
func (p inboundPort) Misbehaved(v any) *codec.Abort { return p.c.transport.Misbehaved(v) }
