package msgpack

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/encodable"
	"github.com/asterisque-go/asterisque/internal/truncate"
)

var (
	errNoText  = malformed("a string is not UTF-8")
	errTooDeep = malformed("nested more than " + strconv.Itoa(depthMost) + " deep")
	errTwice   = malformed("a map has a key twice")
	errTime    = malformed("a timestamp is none")
)

// reason is the description of a malformed item, in the terms of the codec.
type reason string

func (r reason) Error() string { return string(r) }

func malformed(why string) error { return reason("malformed MessagePack: " + why) }

// malformed returns the reason why peek has found no item.
func (r *itemReader) malformed() error {
	if r.at < len(r.data) && r.data[r.at] == 0xc1 {
		return malformed("the byte c1 begins nothing")
	}
	return malformed("it ends in the middle")
}

// decodeError returns err as an error of Decode.
func decodeError(err error, v any) error {
	var r reason
	switch {
	case err == nil:
		return nil
	case errors.As(err, &r):
		return &codec.ValueError{Reason: string(r), Err: fmt.Errorf("to be decoded into a %T", v)}
	}
	var t *codec.TypeError
	if errors.As(err, &t) && t.Err == nil {
		t.Err = fmt.Errorf("to be decoded into a %T", v)
	}
	return err
}

// encodeError returns err as an error of Append.
func encodeError(err error, v any) error {
	f := fault(err)
	cause := fmt.Errorf("%T", v)
	if f.Err != nil {
		cause = fmt.Errorf("%T: %w", v, f.Err)
	}
	if f.Unsupported {
		return &codec.TypeError{Path: f.Path, Want: "a value that MessagePack can hold", Got: "another one", Err: cause}
	}
	return &codec.ValueError{Reason: f.Text(), Err: cause}
}

// fault returns err, an encoding error, as one with a path.
func fault(err error) *encodable.Fault {
	if f, ok := err.(*encodable.Fault); ok { // nothing here wraps one
		return f
	}
	if r, ok := err.(reason); ok {
		return &encodable.Fault{Reason: string(r)}
	}
	return &encodable.Fault{Reason: "the value could not be encoded as MessagePack", Err: err}
}

// inSent adds a part of the encoded value to the path of err.
func inSent(err error, name string) error { return fault(err).Within(name) }

// unsupported is the fault of a type that has no encoding.
func unsupported(t reflect.Type) error {
	return &encodable.Fault{Unsupported: true, Reason: "it has no form", Err: fmt.Errorf("%v has no encoding", t)}
}

const mostName = 64 // bytes of a name that the peer can choose

// within adds a part of the value to the path of err.
func within(err error, name string) error {
	if t, ok := err.(*codec.TypeError); ok { // nothing here wraps one
		t.Within(name)
	}
	return err
}

// among names a part by its index, and field by its name.
func among(i int) string       { return "[" + strconv.Itoa(i) + "]" }
func field(name string) string { return "." + string(truncate.Text([]byte(name), mostName)) }

// entry names a value by its key, which is an item.
func entry(key []byte, i int) string {
	r := itemReader{data: key}
	switch h := r.peek(); h.kind {
	case isText:
		_, text := r.item(h)
		return "[" + strconv.Quote(string(truncate.Text(text, mostName))) + "]"
	case isInteger:
		return "[" + integerOf(key).String() + "]"
	}
	return "[of entry " + strconv.Itoa(i) + "]"
}

// mismatch is the error for the next item, with the head h, which does not match p.
func (r *itemReader) mismatch(p *plan, h itemHead) error {
	want, got := p.want(), names[h.kind]
	switch {
	case h.kind == isInteger && (p.form == asInteger || p.form == asUnsigned):
		want, got = p.range64(), integerOf(r.data[r.at:r.at+h.size]).String()
	case h.kind == isExt && h.ext == timestamp:
		got = "a timestamp"
	case h.kind == isExt:
		got = "extension type " + strconv.Itoa(int(h.ext))
	}
	if want == got {
		got = "one that does not fit"
	}
	return &codec.TypeError{Want: want, Got: got}
}

// range64 names the integers that p accepts.
func (p *plan) range64() string {
	name := fmt.Sprintf("an integer of %d bits", p.t.Bits())
	if p.form == asUnsigned {
		name += " from 0 on"
	}
	return name
}
