package exchange

// LookForOther checks at once whether another exchange has the id of x.
func (x *Exchange) LookForOther() { x.domain.lookForOther(x.ctx, x.cfg.Logger) }
