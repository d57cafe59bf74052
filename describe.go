package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
)

// Describe is the function by which tools list the functions of a service. It exists only for
// services that offer it with [Service.Describe]. An answer that exceeds the caller's
// [Limits].MaxMessage fails with ErrTooLarge: then ask for less.
var Describe = Func[DescribeQuery, []FunctionInfo](65_535, "describe")

// DescribeQuery selects the answer of [Describe]. Its zero value asks for everything.
type DescribeQuery struct {
	// numbers, of which some may be unknown; if empty, all functions
	Functions []uint16 `cbor:"1,keyasint,omitempty" json:"functions,omitempty"`
	NoSchemas bool     `cbor:"2,keyasint,omitempty" json:"no_schemas,omitempty"`
}

// Describe offers [Describe] (function 65,535), the list of functions, to all peers of the service,
// or only to some with [WithGrantOnly]. It panics as [Service.Handle] does, and if [WithSchemas]
// finds a type without a schema.
func (s *Service) Describe(opts ...StandardOption) {
	o := newOffer(opts)
	Describe.Handle(s, s.answerDescribe, standard, o.to(grantDescribe))
	if o.schemas != nil {
		s.describe(schemaOption{o.schemas, here()})
	}
}

// WithSchemas makes [Service.Describe] add schemas to the answer of [Describe], except for the
// untyped functions of [Service.Handle]. Each schema is made once: by Service.Describe for the
// present functions, and at registration for later ones. A type without a schema causes a panic.
// Sessions with another codec than codec.CBOR get no schemas, because the encoding of their values
// differs.
func WithSchemas(s Schemas) StandardOption { return func(o *standardOffer) { o.schemas = s } }

// answerDescribe is the handler of Describe.
func (s *Service) answerDescribe(ctx context.Context, q DescribeQuery) ([]FunctionInfo, error) {
	by := SessionOf(ctx) // nil if an interceptor has replaced the context
	bare := q.NoSchemas || by == nil || by.calls.Coder.Values.Name() != codec.CBOR.Name()
	asked := make(map[uint16]bool)
	for _, n := range q.Functions { // may be long, with duplicates
		asked[n] = true
	}
	list := []FunctionInfo{}
	for _, f := range s.Functions() {
		if len(asked) > 0 && !asked[f.Number] {
			continue
		}
		if bare {
			f.Params, f.Result, f.Sent, f.Received = "", "", "", ""
		}
		list = append(list, f)
	}
	return list, nil
}

// describe makes the schemas of the present functions. Later functions find s.wish. No lock is held
// while the application makes schemas.
func (s *Service) describe(w schemaOption) {
	var before handlerTable
	s.change(func(m handlerTable) { s.schemas, before = w, m })
	for n, h := range before {
		own := *h
		own.describe(w)
		s.change(func(m handlerTable) {
			s.checkUnserved(own.Number, own.Name, "described")
			if m[n] == h {
				m[n] = &own
			}
		})
	}
}

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
