package codec

import (
	"bytes"
	"fmt"
	"math"
	"reflect"

	"github.com/asterisque-go/asterisque/internal/item"
	"github.com/asterisque-go/asterisque/internal/weigh"
)

// hasLongNumber reports whether a number in data is too long for what it becomes in v.
func hasLongNumber(data []byte, v any) bool {
	t := reflect.TypeOf(v)
	if t == nil || t.Kind() != reflect.Pointer || !mayHaveLongNumber(data) {
		return false
	}
	w := cborWeigher{data: data, Tally: weigh.NewTally(math.MaxInt)}
	w.value(cborPlans.Of(t.Elem()), 0)
	return w.long
}

// mayHaveLongNumber looks for the head of a long byte string behind what ends the tag of a number.
// Most data has none, which is soon found.
func mayHaveLongNumber(data []byte) bool {
	for _, head := range []byte{item.Bytes | 25, item.Bytes | 26, item.Bytes | 27, item.Bytes | indefinite} {
		for rest := data; ; {
			i := bytes.IndexByte(rest, head)
			if i < 0 {
				break
			}
			if i > 0 {
				switch rest[i-1] {
				case bignum, negativeBignum, item.Tag | bignum, item.Tag | negativeBignum:
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
