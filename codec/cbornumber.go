package codec

import (
	"bytes"
	"fmt"
	"math"
	"reflect"

	"github.com/asterisque-go/asterisque/internal/cborhead"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// hasLongNumber reports whether a number in data is too long for its type in v.
func hasLongNumber(data []byte, v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || !mayHaveLongNumber(data) {
		return false
	}
	w := cborWeigher{data: data, Tally: sizing.NewTally(math.MaxInt)}
	w.value(cborPlans.Of(t.Elem()), 0)
	return w.long
}

// mayHaveLongNumber searches for the head of a long byte string behind the last byte of a number's
// tag. Most data has none, so the search is quick.
func mayHaveLongNumber(data []byte) bool {
	for _, head := range []byte{cborhead.Bytes | 25, cborhead.Bytes | 26, cborhead.Bytes | 27, cborhead.Bytes | indefinite} {
		for rest := data; ; {
			i := bytes.IndexByte(rest, head)
			if i < 0 {
				break
			}
			if i > 0 {
				switch rest[i-1] {
				case bignum, negativeBignum, cborhead.Tag | bignum, cborhead.Tag | negativeBignum:
					return true
				}
			}
			rest = rest[i+1:]
		}
	}
	return false
}

func errLongNumber(v any) error {
	return &TypeError{
		Want: "something shorter", Got: fmt.Sprintf("an integer of more than %d bytes", longestNumber),
		Err: fmt.Errorf("the type must be big.Int for that, not %T", v),
	}
}
