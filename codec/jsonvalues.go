package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// JSON is encoding/json: for peers without a better codec, and for readable messages. HTML
// characters are not escaped. It has no byte strings of its own: a []byte becomes base64 text.
// Invalid UTF-8 is refused, as RFC 8259 demands: encoding/json would write three bytes for each
// invalid one. The package comment lists the other values that its sender refuses. An object with a
// duplicate key is refused; encoding/json would take the last value.
//
// An integer is refused by a Go type that cannot hold it, and so also by any, which becomes a
// float64, exact up to 2^53 only: use *big.Int, a json.Number or an integer type for larger ones. A
// declared float64 takes the nearest value of any number. A big.Int, a big.Rat and a big.Float are
// decoded from at most 10,000 consecutive digits, with an exponent of at most 10,000: longer
// numbers are rejected before their conversion, which takes a time that grows with the square of
// the length. A json.Number has any length, and is read by the application.
//
// Types that decode themselves have UnmarshalJSON or UnmarshalText. If an UnmarshalJSON decodes its
// content with encoding/json, each level of such values reads all of the content again: data whose
// average byte would be read more than 32 times, with an allowance of 16 MiB, is rejected.
var JSON Values = jsonValues{}

type jsonValues struct{}

func (jsonValues) Name() string {
	return "json"
}

func (jsonValues) Append(dst []byte, v any) ([]byte, error) {
	own, f := jsonSent.Check(v)
	if f != nil {
		return dst, jsonFault(f, v)
	}
	b, err := appendJSON(dst, v)
	if err != nil {
		return dst, jsonEncodeError(err, v)
	}
	if own {
		if f := replacedIn(b[len(dst):], v); f != nil {
			return dst, jsonFault(f, v)
		}
	}
	return b, nil
}

func appendJSON(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	b := buf.Bytes()
	return b[:len(b)-1], nil // without the newline, which Encode adds
}

func (jsonValues) Decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return &ValueError{Reason: "malformed JSON: it is no UTF-8"}
	}
	if key, ok := keyTwice(data); ok {
		return errKeyTwice(key)
	}
	if err := slowJSON(data, v); err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return jsonDecodeError(err, data, v)
	}
	if e := roundedIn(data, v); e != nil {
		return e
	}
	return nil
}

// Weigh implements Weigher.
func (jsonValues) Weigh(data []byte, t reflect.Type, most int) int {
	w := jsonWeigher{data: data, Tally: sizing.NewTally(most)}
	w.value(jsonPlans.Of(t), 0)
	return w.Bytes()
}

func jsonDecodeError(err error, data []byte, v any) error {
	var syntax *json.SyntaxError
	if !json.Valid(data) {
		reason := "malformed JSON"
		if errors.As(err, &syntax) {
			reason += fmt.Sprintf(" at byte %d", syntax.Offset)
		}
		return &ValueError{Reason: reason, Err: err}
	}
	if e := placeIn(v, func(t reflect.Type) *TypeError { return explainJSON(data, t) }); e != nil {
		e.Err = err
		return e
	}
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return &TypeError{Want: "a value of another type", Got: "JSON " + other.Value, Err: err}
	}
	return &ValueError{Reason: "the value, which is well-formed JSON, does not fit", Err: err}
}
