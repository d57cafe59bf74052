package asterisque

import "context"

// Describe is the function by which tools learn what a service offers. It is there only for
// services that chose so with [Service.Describe].
var Describe = Func[struct{}, []FunctionInfo](65_535, "describe")

// Describe lets peers ask, with [Describe] (function 65,535), for the list of functions. It panics
// as [Service.Handle] does.
func (s *Service) Describe(opts ...DescribeOption) {
	var d description
	for _, o := range opts {
		o(&d)
	}
	Describe.Handle(s, func(context.Context, struct{}) ([]FunctionInfo, error) { return s.Functions(), nil }, standard, d.to)
}

// DescribeOption sets what [Service.Describe] offers, or to whom.
type DescribeOption func(*description)

// description is what the options of Describe say.
type description struct {
	granted bool // to some peers only
}

// WithGrantOnly keeps Describe for peers whose [Grant] has its Describe set. For all others there is
// no such function: those to which Access.Accept has granted nothing, or that this side has dialled,
// among them.
func WithGrantOnly() DescribeOption { return func(d *description) { d.granted = true } }

// to sets whom a function is there for.
func (d *description) to(h *handler) { h.granted = d.granted }
