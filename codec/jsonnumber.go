package codec

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// longestDigits is how many digits in a row a number has at the most that becomes a big.Int, a
// big.Rat or a big.Float, and how large its exponent is. To read digits takes a time that grows
// with the square of their number, and so does to write them. An exponent of few digits stands for
// many.
const longestDigits = 10_000

// isBig reports whether t is one of the numbers of package big, or embeds one and its decoding.
func isBig(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[big.Int](), reflect.TypeFor[big.Rat](), reflect.TypeFor[big.Float]():
		return true
	}
	if t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Anonymous {
		embedded := t.Field(0).Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		return embedded.PkgPath() == "math/big" && isBig(embedded)
	}
	return false
}

// lengths returns the maximum number of consecutive digits of a number, and the size of its
// exponent. No number needs an escape: one with escapes counts as the longest.
func lengths(item []byte) (digits, exponent int) {
	if bytes.IndexByte(item, '\\') >= 0 {
		return math.MaxInt32, 0
	}
	hexadecimal := bytes.ContainsAny(item, "xX")
	run := 0
	for i, c := range item {
		isE := c|0x20 == 'e'
		switch {
		case isDigit(c), c == '_', 'a' <= c|0x20 && c|0x20 <= 'f' && (hexadecimal || !isE):
			run++
			digits = max(digits, run)
			continue
		case isE, c|0x20 == 'p':
			exponent = max(exponent, exponentAt(item[i+1:]))
		}
		run = 0
	}
	return digits, exponent
}

// exponentAt returns the size of an exponent, without its sign.
func exponentAt(text []byte) (n int) {
	for i, c := range text {
		switch {
		case i == 0 && (c == '-' || c == '+'), c == '_':
		case !isDigit(c):
			return n
		default:
			n = min(10*n+int(c-'0'), math.MaxInt32)
		}
	}
	return n
}

// longNumber returns the error for a number that is too long for p, or nil.
func longNumber(p *sizing.Plan, item []byte) *TypeError {
	if p.Kind != sizing.Number {
		return nil
	}
	digits, exponent := lengths(item)
	want := "a number of at most " + strconv.Itoa(longestDigits) + " digits"
	switch {
	case digits == math.MaxInt32:
		return &TypeError{Want: want, Got: "one with escapes"}
	case digits > longestDigits:
		return &TypeError{Want: want, Got: fmt.Sprintf("one of %d", digits)}
	case exponent > longestDigits:
		return &TypeError{Want: want, Got: fmt.Sprintf("one with the exponent %d", exponent)}
	}
	return nil
}
