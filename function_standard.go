package asterisque

// Options of the standard functions, which a service has only if it offers them: Service.Describe
// and Service.Health.

// StandardOption configures [Service.Describe] or [Service.Health].
type StandardOption func(*standardOffer)

// standardOffer is the configuration of a standard function.
type standardOffer struct {
	granted bool    // only to peers with a grant
	schemas Schemas // of Describe; nil: none
}

func newOffer(opts []StandardOption) (o standardOffer) {
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// WithGrantOnly restricts standard functions to peers with a [Grant] for them: [Describe] to those
// with Grant.Describe, [CheckHealth] and [WatchHealth] to those with Grant.Health. For all other
// peers, including those without a Grant and those that this side has dialled, the functions do not
// exist.
func WithGrantOnly() StandardOption { return func(o *standardOffer) { o.granted = true } }

// to restricts a function, if granted is set, to peers with a Grant of all of need.
func (o *standardOffer) to(need standardFunctions) HandlerOption {
	return func(h *functionHandler) {
		if o.granted {
			h.Grants = uint8(need)
		}
	}
}
