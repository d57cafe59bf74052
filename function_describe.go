package asterisque

import (
	"context"

	"github.com/asterisque-go/asterisque/codec"
)

// Describe is the function by which tools learn what a service offers. It is there only for
// services that chose so with [Service.Describe]. An answer that is larger than the caller takes
// ([Limits].MaxMessage) fails with ErrTooLarge: then ask for less.
var Describe = Func[DescribeQuery, []FunctionInfo](65_535, "describe")

// DescribeQuery says what [Describe] is asked for. Its zero value asks for everything.
type DescribeQuery struct {
	// these functions, of which some may not be there; if there are none, all
	Functions []uint16 `cbor:"1,keyasint,omitempty" json:"functions,omitempty"`
	NoSchemas bool     `cbor:"2,keyasint,omitempty" json:"no_schemas,omitempty"`
}

// Describe lets peers ask, with [Describe] (function 65,535), for the list of functions: all peers
// to which the service is offered, unless [WithGrantOnly] keeps it for some. It panics as
// [Service.Handle] does, and if [WithSchemas] finds a type that has none.
func (s *Service) Describe(opts ...StandardOption) {
	o := newOffer(opts)
	Describe.Handle(s, s.answerDescribe, standard, o.to(grantDescribe))
	if o.schemas != nil {
		s.describe(schemaWish{o.schemas, here()})
	}
}

// WithSchemas, for [Service.Describe], lets [Describe] tell the schemas of what functions carry,
// apart from the untyped ones of [Service.Handle]. Each is made once: by Service.Describe of the
// functions that are there, and when one is registered of those that come later. If one has no
// schema, that panics. Sessions with another codec than codec.CBOR are told none, because their
// values look different.
func WithSchemas(s Schemas) StandardOption { return func(o *offer) { o.schemas = s } }

// answerDescribe is the handler of Describe.
func (s *Service) answerDescribe(ctx context.Context, q DescribeQuery) ([]FunctionInfo, error) {
	by := SessionOf(ctx) // nil if an interceptor has put another context in place
	bare := q.NoSchemas || by == nil || by.codec.Name() != codec.CBOR.Name()
	asked := make(map[uint16]bool)
	for _, n := range q.Functions { // which may be many, and come twice
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

// describe makes the schemas of the functions that are there. Those that come later find the wish.
// No lock is held meanwhile, since the application makes them.
func (s *Service) describe(w schemaWish) {
	var before handlers
	s.change(func(m handlers) { s.wish, before = w, m })
	for n, h := range before {
		own := *h
		own.describe(w)
		s.change(func(m handlers) {
			s.checkUnserved(own.number, own.name, "described")
			if m[n] == h {
				m[n] = &own
			}
		})
	}
}
