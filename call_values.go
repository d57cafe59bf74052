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

// values encodes and decodes what the calls of a session carry.
type values struct {
	*valueCodec
	session slog.LogValuer // whose calls these are, for logs
}

// valueCodec is a codec as the sessions of a node that have agreed on it use it. It does not
// change.
type valueCodec struct {
	codec   codec.Values
	lender  codec.Lender  // codec, or nil if it lends nothing
	weigher codec.Weigher // codec, or nil if it cannot tell what values become
	most    expansion     // what they may become
	log     *slog.Logger
}

func newValueCodec(c codec.Values, most expansion, log *slog.Logger) *valueCodec {
	v := &valueCodec{codec: c, most: most, log: log}
	v.lender, _ = c.(codec.Lender)
	v.weigher, _ = c.(codec.Weigher)
	return v
}

// encode encodes what v points to behind dst, for whoever calls; handlers are guarded as a whole.
// If lend is true and v is its own encoding, that is returned, and lent says so.
func (c *values) encode(dst []byte, v any, lend bool) (b []byte, lent bool, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // else it is the caller's own goroutine that ends
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

// decode decodes data, which nobody else will use if the codec is a Lender.
func (c *values) decode(data []byte, v any) error {
	if c.lender != nil {
		return c.lender.Keep(data, v)
	}
	return c.codec.Decode(data, v)
}

// decodeWithin decodes data into v, a pointer to a t, for whoever calls, unless it becomes too
// much. Up to free bytes never do. If keep is true, nobody else will use data, and v may keep it.
func (c *values) decodeWithin(data []byte, v any, free int, t reflect.Type, keep bool) (err error) {
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

// weigh returns what data becomes when it is decoded as a t, besides that t itself, or why it is
// not decoded. With a codec that cannot tell it is 0.
func (c *values) weigh(data []byte, t reflect.Type) (n int, err error) {
	if c.weigher == nil {
		return 0, nil
	}
	most := c.most.of(len(data))
	if n = c.weigher.Weigh(data, t, most); n > most {
		return 0, &codec.ValueError{Reason: fmt.Sprintf("%d bytes would become %d or more, beyond the limit of %d here: see Limits.Expansion", len(data), n, most)}
	}
	return n, nil
}

// expansion bounds what values become when they are decoded: so many bytes for each of theirs, and
// so many more.
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

// codecError returns the Abort for a value that could not be encoded or decoded, whose message
// crosses to the peer: it names the function, the place in the value, what was expected there and
// what came, and nothing of Go's. What Go says is its Cause.
func codecError(code Code, number uint16, name, what string, err error) *Abort {
	if errors.Is(err, ErrPanicked) {
		code = codec.Panicked // what encodes or decodes it did
	}
	if what += ": "; code == codec.BadParams && what == "parameters: " {
		what = "" // the code says it already
	}
	return &Abort{Code: code, Message: fmt.Sprintf("function %d %q: %s%s", number, name, what, plainly(err)), Cause: err}
}

// plainly returns what a codec says in its own terms about err.
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
