// Package valuetest holds one table of values for all value codecs. Each value arrives unchanged,
// or its sender rejects it and names the place, before anything is sent.
package valuetest

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"time"
)

// value is a row of the table.
type value struct {
	name string
	v    any
	// the error of the sender, by the name of the codec; the key "" is for all other codecs, and
	// exact means that the value arrives
	says map[string]string
}

// exact means that a value arrives unchanged.
const exact = "exact"

// all is the key for codecs without an entry of their own.
const all = ""

func arrives(name string, v any) value { return value{name, v, map[string]string{all: exact}} }

func refused(name string, v any, says string) value {
	return value{name, v, map[string]string{all: says}}
}

// but sets another outcome for one codec.
func (v value) but(codec, says string) value {
	v.says[codec] = says
	return v
}

// The types of the table.
type (
	named struct {
		Name string
		Next *named `json:",omitempty" cbor:",omitempty" msgpack:",omitempty"`
	}
	anyHolder struct{ Any any }
	// Inner is embedded.
	Inner struct{ Deep []string }
	outer struct {
		*Inner
		Map map[string]anyHolder
	}
	numbers struct {
		I8   int8
		I64  int64
		U64  uint64
		F32  float32
		F64  float64
		Took time.Duration
	}
	timed struct{ At time.Time }
	flags uint16
	label string
)

const bad = "a\xffb"

func texts() []value {
	const says = "a text is not UTF-8"
	return []value{
		arrives("a text", "ß€𝄞\x00"),
		arrives("a text with the replacement character", "\ufffd"),
		arrives("a text like an escape", `\ufffd`),
		refused("no UTF-8", bad, says).but("raw", exact),
		refused("half a character", "€"[:2], says).but("raw", exact),
		refused("a surrogate", "\xed\xa0\x80", says).but("raw", exact),
		refused("in a field", named{Name: bad}, "at .Name: "+says),
		refused("in a field behind a pointer", &named{Next: &named{Name: bad}}, "at .Next.Name: "+says),
		refused("in a type of text", []label{"a", bad}, "at [1]: "+says),
		refused("in a list", []string{"a", bad}, "at [1]: "+says),
		refused("in an array", [2]string{"a", bad}, "at [1]: "+says),
		refused("in a map", map[string]string{"a": bad}, `at ["a"]: `+says),
		refused("in a map of integers", map[int]string{-7: bad}, "at [-7]: "+says),
		refused("as a key", map[string]int{bad: 1}, `at ["a\xffb"]: `+says),
		refused("as a key of any", []any{map[string]any{bad: 1}}, `at [0]["a\xffb"]: `+says),
		refused("in lists of any", []any{1, []any{"a", bad}}, "at [1][1]: "+says),
		refused("in a field of any", anyHolder{[]any{map[string]any{"k": named{Name: bad}}}}, `at .Any[0]["k"].Name: `+says),
		refused("in an embedded struct", outer{Inner: &Inner{Deep: []string{bad}}}, "at .Deep[0]: "+says),
		refused("in a map of structs", outer{Map: map[string]anyHolder{"a": {bad}}}, `at .Map["a"].Any: `+says),
	}
}

func numbersOf() []value {
	nan, other := math.NaN(), math.Float64frombits(0x7ff800000000abcd)
	noNaN := "the value could not be encoded as JSON"
	huge := new(big.Int).Lsh(big.NewInt(1), 100)
	return []value{
		arrives("the least", numbers{math.MinInt8, math.MinInt64, 0, -math.MaxFloat32, -math.MaxFloat64, math.MinInt64}),
		arrives("the most", numbers{math.MaxInt8, math.MaxInt64, math.MaxUint64, math.MaxFloat32, math.MaxFloat64, math.MaxInt64}),
		arrives("the smallest", numbers{F32: math.SmallestNonzeroFloat32, F64: math.SmallestNonzeroFloat64}),
		arrives("a type of integers", flags(65535)),
		arrives("minus zero", math.Copysign(0, -1)),
		arrives("minus zero in a list", []float64{math.Copysign(0, -1), 0}),
		arrives("NaN", nan).but("json", noNaN),
		arrives("NaN with a payload", []float64{other, math.Float64frombits(0xfff8000000000001)}).but("json", "at [0]: "+noNaN),
		arrives("NaN of 32 bits", []float32{math.Float32frombits(0x7fc0beef)}).but("json", "at [0]: "+noNaN),
		arrives("infinities", map[string]float64{"a": math.Inf(1), "b": math.Inf(-1)}).but("json", noNaN),
		arrives("an infinity in a field", numbers{F32: float32(math.Inf(-1))}).but("json", "at .F32: "+noNaN),
		// encoding/json may take keys that are floats, but no NaN
		arrives("a key that is NaN", map[float64]int{nan: 1}).but("json", "JSON"),
		arrives("two that are", map[float64]int{nan: 1, other: 2}).but("json", "JSON"),
		refused("the same NaN twice", map[string]any{"k": sameNaN()}, `at ["k"][NaN]: two keys of a map are one to the peer`).but("json", "JSON"),
		refused("keys of two types", []any{map[any]int{1: 1, int64(1): 2}}, `at [0][1]: two keys of a map are one to the peer`),
		arrives("a large integer", huge).but("msgpack", "more than 64 bits"),
		arrives("a small big.Int", struct{ N *big.Int }{big.NewInt(-5)}),
		arrives("10,000 digits", digits(10_000)).but("msgpack", "more than 64 bits"),
		arrives("10,001 digits", []*big.Int{digits(10_001)}).but("msgpack", "at [0]: MessagePack has no type").but("json", "at [0]: a number of 10001 digits, and peers take 10000"),
		refused("a fraction", struct{ R *big.Rat }{big.NewRat(-1, 3)}, "at .R: ").but("json", exact),
		refused("a long fraction", struct{ R *big.Rat }{new(big.Rat).SetFrac(digits(10_010), big.NewInt(3))}, "at .R: "),
		refused("a big.Float", struct{ F *big.Float }{big.NewFloat(1.5)}, "at .F: ").but("json", exact),
		refused("a precise big.Float", struct{ F *big.Float }{new(big.Float).SetPrec(200).Quo(big.NewFloat(1), big.NewFloat(3))}, "at .F: "),
		arrives("a json.Number", json.Number("12345678901234567890123")),
		arrives("digits in a text", strings.Repeat("9", 20_000)),
	}
}

func sameNaN() map[float64]int {
	m := make(map[float64]int)
	m[math.NaN()] = 1
	m[math.NaN()] = 2
	return m
}

// digits returns an integer of n digits.
func digits(n int) *big.Int {
	return new(big.Int).Sub(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil), big.NewInt(1))
}

func times() []value {
	amsterdam := time.FixedZone("AMT", 19*60+32)
	newYork := time.FixedZone("LMT", -(4*3600 + 56*60 + 2))
	const seconds = " seconds off UTC, and RFC 3339 has whole minutes: send it in UTC"
	at := func(year int, in *time.Location) timed { return timed{time.Date(year, 1, 2, 3, 4, 5, 123456789, in)} }
	beyond := func(name string, year int) value {
		return refused(name, []timed{at(year, time.UTC)}, "at [0].At: ").but("msgpack", exact)
	}
	return []value{
		arrives("a time", at(2026, time.UTC)),
		arrives("a time of its own", at(2026, time.UTC).At),
		arrives("a zone", at(2026, time.FixedZone("", 5*3600+45*60))),
		arrives("Amsterdam in 1900", at(1900, amsterdam)).but("json", "at .At: a time 1172"+seconds),
		arrives("New York in 1880", []any{at(1880, newYork)}).but("json", "at [0].At: a time -17762"+seconds),
		arrives("with a monotonic clock", timed{time.Now()}),
		arrives("the zero time", []timed{{}}),
		arrives("the first year", at(0, time.UTC)),
		arrives("the last year", at(9999, time.UTC)),
		beyond("a year before 0", -1),
		beyond("a year beyond 9999", 10_000),
		beyond("a far year", 290_000_000),
		arrives("times as keys", map[string]time.Time{"k": at(2026, time.UTC).At}),
		arrives("durations", []time.Duration{math.MinInt64, -1, 0, math.MaxInt64}),
	}
}

// nested returns v in depth nested lists.
func nested(depth int, v any) any {
	for range depth {
		v = []any{v}
	}
	return v
}

func depths(most int) []value {
	says := strings.Repeat("[0]", most) + ": values are nested more than"
	if most > 100 { // a path has at most 400 bytes
		says = "…[0]"
	}
	var chain *named
	for range most {
		chain = &named{Next: chain}
	}
	cycle := map[string]any{}
	cycle["c"] = []any{cycle}
	type loop struct{ Next any }
	var endless loop
	endless.Next = &endless
	var pointer any
	pointer = &pointer
	at := time.Unix(1, 0).UTC()
	return []value{
		arrives("as deep as may be", nested(most, nil)),
		arrives("a time, of which the tag is a level", nested(most-1, at)),
		arrives("a time one deeper", nested(most, at)).but("cbor", says),
		refused("deeper", nested(most+1, nil), says),
		arrives("structs as deep as may be", chain),
		refused("deeper structs", named{Next: chain}, ".Next"),
		refused("a map in itself", cycle, `["c"][0]`),
		refused("a struct in itself", &endless, ".Next"),
		refused("pointers in themselves", []any{pointer}, "at [0]: pointers lead to each other without end"),
	}
}

func others() []value {
	hidden := struct{ a, b int }{1, 2}
	return []value{
		refused("a channel", anyHolder{[]any{make(chan int)}}, "at .Any[0]: a value that"),
		refused("what hides itself", []any{hidden}, "at [0]: a value that").but("json", "at [0]: a value that"),
		refused("what refuses itself", map[string]any{"k": refuses{}}, `at ["k"]: the value could not be encoded`),
		arrives("nothing", (*named)(nil)),
		arrives("empty", outer{Map: map[string]anyHolder{}}),
		arrives("bytes", []byte{0, 0xff, 0x80}),
	}
}

// refuses has an encoding of its own in every codec, and it fails.
type refuses struct{}

func (refuses) MarshalBinary() ([]byte, error) { return nil, errRefused }
func (refuses) MarshalText() ([]byte, error)   { return nil, errRefused }
