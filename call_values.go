package asterisque

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"reflect"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/guard"
)

// valueCoder encodes and decodes the values of a session's calls.
type valueCoder struct {
	*valueCodec
	session slog.LogValuer // session of the calls, for logs
}

// valueCodec is a codec in the form used by the sessions of a node that have agreed on it. It does
// not change.
type valueCodec struct {
	codec   codec.Values
	lender  codec.Lender  // codec, or nil if it is no Lender
	weigher codec.Weigher // codec, or nil if it cannot estimate decoded sizes
	most    expansion     // bound of decoded values
	log     *slog.Logger
}

func newValueCodec(c codec.Values, most expansion, log *slog.Logger) *valueCodec {
	v := &valueCodec{codec: c, most: most, log: log}
	v.lender, _ = c.(codec.Lender)
	v.weigher, _ = c.(codec.Weigher)
	return v
}

// encode appends the encoding of v, which v points to, to dst, for a caller; handlers are guarded
// as a whole. If lend is true and v is its own encoding, encode returns that, and lent is true.
func (c *valueCoder) encode(dst []byte, v any, lend bool) (b []byte, lent bool, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // otherwise the caller's own goroutine ends
			b, lent, err = dst, false, guard.Misbehaved(c.log, "encoding a value", v, "session", c.session)
		}
	}()
	if lend && c.lender != nil {
		b, lent = c.lender.Bytes(v)
	}
	if !lent {
		b, err = c.codec.Append(dst, v)
	}
	returned = true
	return b, lent, err
}

// decode decodes data, which has no other user if the codec is a Lender.
func (c *valueCoder) decode(data []byte, v any) error {
	if c.lender != nil {
		return c.lender.Keep(data, v)
	}
	return c.codec.Decode(data, v)
}

// decodeWithin decodes data into v, a pointer to a t, for a caller, unless the value exceeds the
// bound. Up to free bytes never do. If keep is true, data has no other user, and v may keep it.
func (c *valueCoder) decodeWithin(data []byte, v any, free int, t reflect.Type, keep bool) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // as in encode
			err = guard.Misbehaved(c.log, "decoding a value", v, "session", c.session)
		}
	}()
	switch {
	case keep && c.lender != nil:
		err = c.lender.Keep(data, v)
	case len(data) > free:
		if _, err = c.weigh(data, t); err != nil {
			break
		}
		fallthrough
	default:
		err = c.codec.Decode(data, v)
	}
	returned = true
	return err
}

// weigh returns the decoded size of data as a t, without that t itself, or an error if the size
// exceeds the bound. With a codec that cannot estimate, the size is 0.
func (c *valueCoder) weigh(data []byte, t reflect.Type) (n int, err error) {
	if c.weigher == nil {
		return 0, nil
	}
	most := c.most.of(len(data))
	if n = c.weigher.Weigh(data, t, most); n > most {
		return 0, &codec.ValueError{Reason: fmt.Sprintf("%d bytes would become %d or more, beyond the limit of %d here: see Limits.Expansion", len(data), n, most)}
	}
	return n, nil
}

// expansion bounds the size of decoded values: a multiple of the encoded bytes, plus a constant.
type expansion struct {
	times, plus int
}

// of returns the bound for n bytes.
func (e expansion) of(n int) int {
	if n > 0 && e.times > (math.MaxInt-e.plus)/n {
		return math.MaxInt
	}
	return e.times*n + e.plus
}

// codecError returns the Abort for a value that could not be encoded or decoded. Its message is
// sent to the peer: it names the function, the place in the value, the expected and the actual
// type, and nothing of Go. The error of Go is its Cause.
func codecError(code Code, number uint16, name, what string, err error) *Abort {
	if errors.Is(err, ErrPanicked) {
		code = codec.Panicked // the encoding or decoding code panicked
	}
	if what += ": "; code == codec.BadParams && what == "parameters: " {
		what = "" // the code implies it
	}
	return &Abort{Code: code, Message: fmt.Sprintf("function %d %q: %s%s", number, name, what, plainly(err)), Cause: err}
}

// plainly returns the text of err in the terms of a codec.
func plainly(err error) string {
	var value interface{ Text() string } // a *codec.TypeError or *codec.ValueError
	var a *Abort
	switch {
	case errors.As(err, &value):
		return value.Text()
	case errors.As(err, &a) && a != nil:
		return a.Message
	}
	return "the codec does not take the value"
}
