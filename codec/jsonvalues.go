package codec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// JSON is encoding/json: for peers that have nothing better, and for reading along. HTML characters are not escaped. It
// has no byte strings of its own: a []byte becomes base64 text. What is no UTF-8 is refused, as RFC 8259 demands: encoding/json
// would put three bytes for each that is none. An integer is refused by a Go type that does not
// hold it; into any it becomes a float64, which is exact up to 2^53 only: use *big.Int, a
// json.Number or an integer type where larger ones may come.
var JSON Values = jsonValues{}

type jsonValues struct{}

func (jsonValues) Name() string {
	return "json"
}

func (jsonValues) Append(dst []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return dst, jsonEncodeError(err, v)
	}
	b := buf.Bytes()
	return b[:len(b)-1], nil // without the newline, which Encode adds
}

func (jsonValues) Decode(data []byte, v any) error {
	if !utf8.Valid(data) {
		return errors.New("asterisque: malformed JSON: it is no UTF-8")
	}
	if err := json.Unmarshal(data, v); err != nil {
		return jsonDecodeError(err, data, v)
	}
	return nil
}

func jsonEncodeError(err error, v any) error {
	var unsupported *json.UnsupportedTypeError
	if errors.As(err, &unsupported) {
		return &TypeError{Want: "a type that JSON can encode", Got: fmt.Sprintf("%T", v), Err: err}
	}
	return fmt.Errorf("asterisque: encode %T as JSON: %w", v, err)
}

func jsonDecodeError(err error, data []byte, v any) error {
	var mismatch *json.UnmarshalTypeError
	switch {
	case errors.As(err, &mismatch):
		return &TypeError{Want: mismatch.Type.String(), Got: "JSON " + mismatch.Value, Err: err}
	case !json.Valid(data):
		return fmt.Errorf("asterisque: malformed JSON: %w", err)
	default:
		return fmt.Errorf("asterisque: decode JSON into %T: %w", v, err)
	}
}
