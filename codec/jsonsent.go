package codec

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"time"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/encodable"
	"github.com/asterisque-go/asterisque/internal/sizing"
)

// jsonSent finds values that JSON does not carry, or that package json would change.
var jsonSent = &encodable.Rules{
	Plans:   &sizing.Plans{Rules: sizing.Rules{Kind: jsonSentKind, Field: jsonField}},
	Depth:   jsonDepth,
	Special: jsonSpecial,
	Encode:  encodeAlone,
}

func jsonSentKind(t reflect.Type) (k sizing.Kind, ok bool) {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return sizing.Time, true
	case t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface:
		return 0, false
	case isBig(t) && t.PkgPath() == "math/big":
		return sizing.Number, true
	}
	p := reflect.PointerTo(t)
	own := p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
	return sizing.Own, own
}

func jsonSpecial(p *sizing.Plan, v reflect.Value) (levels int, f *encodable.Fault) {
	switch p.Kind {
	case sizing.Time:
		return 0, timeFault(*addressed(v).(*time.Time))
	case sizing.Number:
		return 0, bigFault(v)
	}
	return 0, nil
}

// timeFault returns the part of t that RFC 3339 cannot represent.
func timeFault(t time.Time) *encodable.Fault {
	_, offset := t.Zone()
	switch year := t.Year(); {
	case year < 0 || year > 9999:
		return &encodable.Fault{Reason: fmt.Sprintf("a time in the year %d, and RFC 3339 has 0 to 9999", year)}
	case offset%60 != 0:
		return &encodable.Fault{Reason: fmt.Sprintf("a time %d seconds off UTC, and RFC 3339 has whole minutes: send it in UTC", offset)}
	}
	return nil
}

// bigFault returns why v, a number of package big, does not arrive unchanged.
func bigFault(v reflect.Value) *encodable.Fault {
	digits := 0
	switch n := addressed(v).(type) {
	case *big.Int:
		digits = digitsOf(n)
	case *big.Rat:
		digits = max(digitsOf(n.Num()), digitsOf(n.Denom()))
	case *big.Float:
		return floatFault(n)
	}
	if digits > longestDigits {
		return &encodable.Fault{Reason: fmt.Sprintf("a number of %d digits, and peers take %d", digits, longestDigits)}
	}
	return nil
}

// digitsOf returns the number of digits of n, only approximately if it is far too large.
func digitsOf(n *big.Int) int {
	about := int(float64(n.BitLen())*math.Log10(2)) + 1
	if about < longestDigits || about > 2*longestDigits {
		return about
	}
	return len(new(big.Int).Abs(n).String())
}

// floatFault returns the fault of a big.Float that 64 bits, which the peer reads, do not hold, or
// whose exponent the peer does not take. To write digits takes as long as to read them.
func floatFault(n *big.Float) *encodable.Fault {
	const bitsThere = 64
	if about := float64(n.MantExp(nil)) * math.Log10(2); math.Abs(about) > 2*longestDigits {
		return longExponent(int(about))
	}
	if n.MinPrec() > bitsThere {
		return rounds()
	}
	text := n.Text('g', -1)
	if _, exponent := lengths([]byte(text)); exponent > longestDigits {
		return longExponent(exponent)
	}
	there, _, err := big.ParseFloat(text, 10, bitsThere, big.ToNearestEven)
	if err != nil || there.Cmp(n) != 0 {
		return rounds()
	}
	return nil
}

func rounds() *encodable.Fault {
	return &encodable.Fault{Reason: "a floating-point number that is rounded where it arrives: send a fraction or a text"}
}

func longExponent(exponent int) *encodable.Fault {
	return &encodable.Fault{Reason: fmt.Sprintf("a floating-point number with the exponent %d, and peers take %d", exponent, longestDigits)}
}

// addressed returns a pointer to v, or to a copy of it.
func addressed(v reflect.Value) any {
	if !v.CanAddr() {
		c := reflect.New(v.Type()).Elem()
		c.Set(v)
		v = c
	}
	return v.Addr().Interface()
}

var replacement = []byte(`\ufffd`) // package json writes it for a byte that is no UTF-8

// replacedIn returns where encoded, the encoding of v, is not UTF-8, or was not before package json
// has replaced it. Values that encode themselves may be so.
func replacedIn(encoded []byte, v any) *encodable.Fault {
	valid := utf8.Valid(encoded)
	if valid && !bytes.Contains(encoded, replacement) {
		return nil
	}
	f := jsonSent.Explain(v)
	if f == nil && !valid {
		f = encodable.NotUTF8()
	}
	if f != nil && errors.Is(f.Err, errNotUTF8) {
		f.Reason, f.Err = encodable.NotUTF8().Reason, nil
	}
	return f
}

var errNotUTF8 = errors.New("it is not UTF-8")

// encodeAlone encodes a part of a value, more strictly than package json.
func encodeAlone(v any) ([]byte, error) {
	if t, ok := v.(encoding.TextMarshaler); ok {
		if _, ok := v.(json.Marshaler); !ok {
			if text, err := t.MarshalText(); err == nil && !utf8.Valid(text) {
				return nil, errNotUTF8
			}
		}
	}
	b, err := appendJSON(nil, v)
	if err == nil && !utf8.Valid(b) {
		err = errNotUTF8
	}
	return b, err
}

// jsonFault returns f, a fault of v, as an error of Append.
func jsonFault(f *encodable.Fault, v any) error {
	return sendError(f, v, "a value that JSON can hold", "JSON")
}

// jsonEncodeError returns err, an error of package json for v, as an error of Append.
func jsonEncodeError(err error, v any) error {
	var unsupported *json.UnsupportedTypeError
	return jsonFault(explained(jsonSent, err, v, errors.As(err, &unsupported)), v)
}
