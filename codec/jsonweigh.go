package codec

import (
	"encoding"
	"encoding/json"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/asterisque-go/asterisque/internal/sizing"
)

// jsonDepth is the maximum nesting of values in encoding/json.
const jsonDepth = 10_000

var jsonPlans = &sizing.Plans{Rules: sizing.Rules{Kind: jsonKind, Field: jsonField}}

func jsonKind(t reflect.Type) (k sizing.Kind, ok bool) {
	if t == reflect.TypeFor[time.Time]() {
		return sizing.Time, true
	}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface {
		return 0, false
	}
	if isBig(t) {
		return sizing.Number, true
	}
	p := reflect.PointerTo(t)
	own := p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	return sizing.Own, own
}

// jsonField reads the tag of a field as encoding/json does.
func jsonField(f reflect.StructField) (n sizing.Name, ok bool) {
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	structure := f.Anonymous && t.Kind() == reflect.Struct
	tag := f.Tag.Get("json")
	if tag == "-" || !f.IsExported() && !structure {
		return n, false
	}
	name, options, _ := strings.Cut(tag, ",")
	if strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}) {
		name = ""
	}
	n = sizing.Name{Name: name, Tagged: name != "", Embedded: structure && name == "", Quoted: isQuoted(t, options)}
	if name == "" {
		n.Name = f.Name
	}
	return n, true
}

// isQuoted reports whether the options of a tag allow a string for a field of type t.
func isQuoted(t reflect.Type, options string) bool {
	switch t.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map, reflect.Struct, reflect.Interface, reflect.Pointer:
		return false
	}
	return slices.Contains(strings.Split(options, ","), "string")
}

// jsonWeigher walks the values of data, once and in their order.
type jsonWeigher struct {
	sizing.Tally
	data []byte
	at   int    // the next byte; len(data) after an error
	name []byte // of a field that was written with escapes
	long bool   // a number came that would take too long to read

	own    int  // types that decode themselves, within which it stands
	reread int  // bytes in these, once for each array and object around them
	deep   bool // they are too many
}

func (w *jsonWeigher) done() bool { return w.at >= len(w.data) || w.Over() }

// end is called if data is malformed.
func (w *jsonWeigher) end() { w.at = len(w.data) }

// next returns the next byte that is no space, without consuming it, or 0.
func (w *jsonWeigher) next() byte {
	for ; !w.done(); w.at++ {
		switch c := w.data[w.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// value weighs one value that is nested depth deep and is decoded by plan p.
func (w *jsonWeigher) value(p *sizing.Plan, depth int) {
	c := w.next()
	if w.done() || depth > jsonDepth {
		w.end()
		return
	}
	if c == 'n' {
		w.literal()
		return
	}
	for p.Kind == sizing.Pointer && !w.Over() {
		w.Add(sizing.Alloc(p.Elem.Size))
		p = p.Elem
	}
	from := w.at
	switch p.Kind {
	case sizing.Own:
		w.owned(p, c, depth)
		w.Text(w.at - from)
	case sizing.Number:
		w.concrete(sizing.NothingPlan, c, depth)
		w.number(p, w.data[from:w.at])
	case sizing.Time:
		w.concrete(sizing.NothingPlan, c, depth)
		w.Add(sizing.Zone)
	case sizing.Any:
		w.dynamic(c, depth)
	default:
		w.concrete(p, c, depth)
	}
}

// concrete weighs a value that begins with c.
func (w *jsonWeigher) concrete(p *sizing.Plan, c byte, depth int) {
	from := w.at
	switch c {
	case '[':
		w.Enter(depth)
		w.array(p, depth+1)
		w.Leave(depth)
		w.again(w.at - from)
	case '{':
		w.Enter(depth)
		w.object(p, depth+1)
		w.Leave(depth)
		w.again(w.at - from)
	case '"':
		w.text(p)
	default:
		size := w.literal()
		if p.Kind == sizing.Text { // a json.Number
			w.Text(size)
		}
	}
}

// dynamic weighs a value of any type.
func (w *jsonWeigher) dynamic(c byte, depth int) {
	p := textPlan
	switch c {
	case '[':
		w.Add(sizing.Header)
		p = sizing.SlicePlan
	case '{':
		p = anyObject
	case '"':
		w.Add(sizing.String)
	default:
		p = sizing.NothingPlan
		if c != 't' && c != 'f' {
			w.Add(sizing.Word)
		}
	}
	w.concrete(p, c, depth)
}

// number weighs a number that decodes itself.
func (w *jsonWeigher) number(p *sizing.Plan, item []byte) {
	digits, exponent := lengths(item)
	w.Text(len(item))
	if p.Type != reflect.TypeFor[big.Float]() { // of which it stays one
		w.Text(min(exponent, longestDigits) / 2) // bytes of so many digits
	}
	if max(digits, exponent) > longestDigits {
		w.long = true
		w.end()
	}
}

// anyObject is the plan of an object that is decoded without a type.
var anyObject = sizing.MapPlan(&sizing.Plan{Kind: sizing.Text, Size: sizing.String})

// literal skips a number, true, false or null, and returns its size.
func (w *jsonWeigher) literal() (size int) {
	from := w.at
	for ; w.at < len(w.data); w.at++ {
		switch w.data[w.at] {
		case ',', ']', '}', ':', '"', '[', '{', ' ', '\t', '\r', '\n':
			if w.at == from {
				w.end() // there is none
			}
			return w.at - from
		}
	}
	return w.at - from
}

// quoted reads a string and returns the bytes between its quotes.
func (w *jsonWeigher) quoted() (raw []byte, escaped bool) {
	w.at++
	for from := w.at; w.at < len(w.data); w.at++ {
		switch w.data[w.at] {
		case '\\':
			escaped = true
			w.at++
		case '"':
			w.at++
			return w.data[from : w.at-1], escaped
		}
	}
	w.end()
	return nil, false
}

// text weighs a string. Without its escapes it is shorter.
func (w *jsonWeigher) text(p *sizing.Plan) {
	raw, escaped := w.quoted()
	if p.Kind == sizing.Nothing {
		return
	}
	w.Text(len(raw))
	if escaped { // the decoder builds it in a slice that grows
		w.Text(3 * len(raw))
		w.Drop(sizing.Alloc(3 * len(raw)))
	}
}

// follows reports whether there is a value, or a field, before end; first marks the first one.
func (w *jsonWeigher) follows(end byte, first bool) bool {
	c := w.next()
	switch {
	case w.done():
		return false
	case c == end:
		w.at++
		return false
	case first:
		return true
	case c != ',':
		w.end()
		return false
	}
	w.at++
	return true
}

func (w *jsonWeigher) array(p *sizing.Plan, depth int) {
	w.at++
	var s sizing.GrowingSlice
	for i := 0; w.follows(']', i == 0); i++ {
		switch {
		case p.Kind == sizing.Slice:
			s.Append(&w.Tally, p.Elem.Size)
			w.value(p.Elem, depth)
		case p.Kind == sizing.Array && i < p.Len:
			w.value(p.Elem, depth)
		default:
			w.value(sizing.NothingPlan, depth)
		}
	}
}

// keySize is the memory of a key in the search for duplicates, in a slice that grows.
const keySize = 2 * 16

func (w *jsonWeigher) object(p *sizing.Plan, depth int) {
	w.at++
	var m sizing.GrowingMap
	switch p.Kind {
	case sizing.Struct:
		w.Add(p.Extra)
	case sizing.Map:
		w.Add(sizing.MapSize)
	}
	keys := 0
	for first := true; w.follows('}', first); first = false {
		w.Add(keySize)
		keys += keySize
		if w.next() != '"' {
			w.end()
			return
		}
		value := sizing.NothingPlan
		switch p.Kind {
		case sizing.Struct:
			if f := p.Field(w.key()); f != nil {
				value = f
			}
		case sizing.Map:
			m.Put(&w.Tally, p.Entry)
			w.Add(p.Aside)
			w.text(textPlan)
			value = p.Elem
		default:
			w.quoted()
		}
		if w.next() != ':' {
			w.end()
			return
		}
		w.at++
		w.value(value, depth)
	}
	w.Drop(keys)
}

// key reads the name of a field.
func (w *jsonWeigher) key() []byte {
	raw, escaped := w.quoted()
	if !escaped {
		return raw
	}
	w.name = unescape(w.name[:0], raw)
	return w.name
}

// longestName bounds the names that are unescaped.
const longestName = 256

// unescape appends raw without its escapes. It stops at the maximum length of a name.
func unescape(dst, raw []byte) []byte {
	for len(raw) > 0 && len(dst) < longestName {
		if raw[0] != '\\' || len(raw) < 2 {
			dst, raw = append(dst, raw[0]), raw[1:]
			continue
		}
		switch c := raw[1]; c {
		case 'u':
			r, size := escapedRune(raw)
			dst, raw = utf8.AppendRune(dst, r), raw[size:]
			continue
		case 'b', 'f', 'n', 'r', 't':
			dst = append(dst, ' ') // a name has none of these
		default:
			dst = append(dst, c)
		}
		raw = raw[2:]
	}
	return dst
}

// escapedRune returns the rune at the start of raw, written as \uXXXX, or as two of these.
func escapedRune(raw []byte) (r rune, size int) {
	r = unit(raw)
	if utf16.IsSurrogate(r) {
		if both := utf16.DecodeRune(r, unit(raw[min(6, len(raw)):])); both != utf8.RuneError {
			return both, 12
		}
	}
	return r, min(6, len(raw))
}

func unit(raw []byte) rune {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 32)
	if err != nil {
		return -1
	}
	return rune(n)
}
