package asterisque

// What the standard functions have in common, which a service has only if it chose so:
// Service.Describe and Service.Health.

// StandardOption sets what [Service.Describe] or [Service.Health] offers, or to whom.
type StandardOption func(*offer)

// offer is what the program has said of a standard function.
type offer struct {
	granted bool    // to some peers only
	schemas Schemas // of Describe; nil: without
}

func newOffer(opts []StandardOption) (o offer) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithGrantOnly keeps standard functions for peers whose [Grant] says so: [Describe] for those with
// Grant.Describe, [CheckHealth] and [WatchHealth] for those with Grant.Health. For all others there
// are no such functions: those to which Access.Accept has granted nothing, or that this side has
// dialled, among them.
func WithGrantOnly() StandardOption { return func(o *offer) { o.granted = true } }

// to sets whom a function is there for: if for some only, for those whose Grant has all of need.
func (o *offer) to(need standards) HandlerOption {
	return func(h *handler) {
		if o.granted {
			h.grants = need
		}
	}
}
