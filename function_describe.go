package asterisque

import "context"

// Describe is the function by which tools learn what a service offers. It is there only for
// services that chose so with [Service.Describe].
var Describe = Func[struct{}, []FunctionInfo](65_535, "describe")

// Describe lets peers ask, with [Describe] (function 65,535), for the list of functions.
func (s *Service) Describe() {
	Describe.Handle(s, func(context.Context, struct{}) ([]FunctionInfo, error) { return s.Functions(), nil }, standard)
}
