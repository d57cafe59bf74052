package asterisque

import (
	"reflect"

	"github.com/asterisque-go/asterisque/internal/guard"
)

// encode encodes what v points to behind dst, for whoever calls; handlers are guarded as a whole.
// If lend is true and v is its own encoding, that is returned, and lent says so.
func (s *Session) encode(dst []byte, v any, lend bool) (b []byte, lent bool, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // else it is the caller's own goroutine that ends
			b, lent, err = dst, false, guard.Misbehaved(s.cfg.log, "encoding a value", v, "session", s)
		}
	}()
	if lend && s.lender != nil {
		b, lent = s.lender.Bytes(v)
	}
	if !lent {
		b, err = s.values.Append(dst, v)
	}
	returned = true
	return b, lent, err
}

// decodeWithin decodes data into v, a pointer to a t, for whoever calls, unless it becomes too
// much. Up to free bytes never do. If keep is true, nobody else will use data, and v may keep it.
func (s *Session) decodeWithin(data []byte, v any, free int, t reflect.Type, keep bool) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil { // as in encode
			err = guard.Misbehaved(s.cfg.log, "decoding a value", v, "session", s)
		}
	}()
	switch {
	case keep && s.lender != nil:
		err = s.lender.Keep(data, v)
	case len(data) > free:
		if _, err = s.weigh(data, t); err != nil {
			break
		}
		fallthrough
	default:
		err = s.values.Decode(data, v)
	}
	returned = true
	return err
}
