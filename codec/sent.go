package codec

import (
	"fmt"

	"github.com/asterisque-go/asterisque/internal/encodable"
)

// explained returns err, with which a library has refused to encode v, with the path to the cause.
// unsupported reports that the cause is its type.
func explained(rules *encodable.Rules, err error, v any, unsupported bool) *encodable.Fault {
	f := rules.Explain(v)
	if f == nil {
		f = &encodable.Fault{}
	}
	f.Reason, f.Unsupported, f.Err = "", unsupported, err
	return f
}

// sendError returns f, a fault of v, as an error of Append. format names the codec.
func sendError(f *encodable.Fault, v any, want, format string) error {
	err := fmt.Errorf("%T", v)
	if f.Err != nil {
		err = fmt.Errorf("%T: %w", v, f.Err)
	}
	if f.Unsupported {
		return &TypeError{Path: f.Path, Want: want, Got: "another one", Err: err}
	}
	if f.Reason == "" {
		f.Reason = "the value could not be encoded as " + format
	}
	return &ValueError{Reason: f.Text(), Err: err}
}
