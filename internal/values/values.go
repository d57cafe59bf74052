// Package values encodes and decodes the values of calls: by the codec on which a session has
// agreed, within the bounds of a node, and with errors that name the place in the value.
package values

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// Coder encodes and decodes the values of a session's calls.
type Coder struct {
	*Codec
	Session slog.LogValuer // session of the calls, for logs
}

// Codec is a codec in the form used by the sessions of a node that have agreed on it. It does
// not change.
type Codec struct {
	Values  codec.Values
	Lender  codec.Lender  // codec, or nil if it is no Lender
	weigher codec.Weigher // codec, or nil if it cannot estimate decoded sizes
	most    Expansion     // bound of decoded values
	Log     *slog.Logger
}

// NewCodec returns the form of c for sessions, with a bound of decoded values.
func NewCodec(c codec.Values, most Expansion, log *slog.Logger) *Codec {
	v := &Codec{Values: c, most: most, Log: log}
	v.Lender, _ = c.(codec.Lender)
	v.weigher, _ = c.(codec.Weigher)
	return v
}

// Encode appends the encoding of v, which v points to, to dst, for a caller; handlers are guarded
// as a whole. If lend is true and v is its own encoding, Encode returns that, and lent is true.
func (c *Coder) Encode(dst []byte, v any, lend bool) (b []byte, lent bool, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // otherwise the caller's own goroutine ends
			b, lent, err = dst, false, guard.Misbehaved(c.Log, "encoding a value", v, "session", c.Session)
		}
	}()
	if lend && c.Lender != nil {
		b, lent = c.Lender.Bytes(v)
	}
	if !lent {
		b, err = c.Values.Append(dst, v)
	}
	returned = true
	return b, lent, err
}

// Decode decodes data, which has no other user if the codec is a Lender.
func (c *Coder) Decode(data []byte, v any) error {
	if c.Lender != nil {
		return c.Lender.Keep(data, v)
	}
	return c.Values.Decode(data, v)
}

// DecodeWithin decodes data into v, a pointer to a t, for a caller, unless the value exceeds the
// bound. Up to free bytes never do. If keep is true, data has no other user, and v may keep it.
func (c *Coder) DecodeWithin(data []byte, v any, free int, t reflect.Type, keep bool) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // as in encode
			err = guard.Misbehaved(c.Log, "decoding a value", v, "session", c.Session)
		}
	}()
	switch {
	case keep && c.Lender != nil:
		err = c.Lender.Keep(data, v)
	case len(data) > free:
		if _, err = c.Weigh(data, t); err != nil {
			break
		}
		fallthrough
	default:
		err = c.Values.Decode(data, v)
	}
	returned = true
	return err
}

// Weigh returns the decoded size of data as a t, without that t itself, or an error if the size
// exceeds the bound. With a codec that cannot estimate, the size is 0.
func (c *Coder) Weigh(data []byte, t reflect.Type) (n int, err error) {
	if c.weigher == nil {
		return 0, nil
	}
	most := c.most.of(len(data))
	if n = c.weigher.Weigh(data, t, most); n > most {
		return 0, &codec.ValueError{Reason: fmt.Sprintf("%d bytes would become %d or more, beyond the limit of %d here: see Limits.Expansion", len(data), n, most)}
	}
	return n, nil
}

// Expansion bounds the size of decoded values: a multiple of the encoded bytes, plus a constant.
type Expansion struct {
	Times, Plus int
}

// of returns the bound for n bytes.
func (e Expansion) of(n int) int {
	if n > 0 && e.Times > (math.MaxInt-e.Plus)/n {
		return math.MaxInt
	}
	return e.Times*n + e.Plus
}

// Error returns the Abort for a value that could not be encoded or decoded. Its message is
// sent to the peer: it names the function, the place in the value, the expected and the actual
// type, and nothing of Go. The error of Go is its Cause.
func Error(code codec.Code, number uint16, name, what string, err error) *codec.Abort {
	if errors.Is(err, codec.ErrPanicked) {
		code = codec.Panicked // the encoding or decoding code panicked
	}
	if what += ": "; code == codec.BadParams && what == "parameters: " {
		what = "" // the code implies it
	}
	return &codec.Abort{Code: code, Message: fmt.Sprintf("function %d %q: %s%s", number, name, what, plainly(err)), Cause: err}
}

// plainly returns the text of err in the terms of a codec.
func plainly(err error) string {
	var value interface{ Text() string } // a *codec.TypeError or *codec.ValueError
	var a *codec.Abort
	switch {
	case errors.As(err, &value):
		return value.Text()
	case errors.As(err, &a) && a != nil:
		return a.Message
	}
	return "the codec does not take the value"
}
