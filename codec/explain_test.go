package codec

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"
	"github.com/stretchr/testify/require"
)

type (
	span struct {
		N    int8           `json:"n"`
		At   time.Time      `json:"at,omitzero"`
		Tags []string       `json:"tags,omitempty"`
		By   map[string]int `json:"by,omitempty"`
	}
	request struct {
		Window span            `json:"window"`
		Spans  []*span         `json:"spans,omitempty"`
		Days   map[int]float64 `json:"days,omitempty"`
		Blob   []byte          `json:"blob,omitempty"`
		Quoted int             `json:"quoted,string,omitempty"`
	}
	listed struct {
		_ struct{} `cbor:",toarray"`
		A int
		B string
	}
	byNumber struct {
		A int    `cbor:"1,keyasint"`
		B string `cbor:"-2,keyasint"`
	}
	embedding struct {
		span
		More bool `json:"more"`
	}
	picky struct{ Word string }
)

var errPicky = errors.New("codec.picky wants struct{...}, int64 or main.word")

func (p *picky) UnmarshalJSON([]byte) error  { return errPicky }
func (p *picky) UnmarshalCBOR([]byte) error  { return errPicky }
func (p picky) MarshalJSON() ([]byte, error) { return []byte(`"picky"`), nil }
func (p picky) MarshalCBOR() ([]byte, error) { return []byte{0x65, 'p', 'i', 'c', 'k', 'y'}, nil }

// A mismatch is reported with its place.
func TestMismatch_NamesPlace(t *testing.T) {
	for _, c := range []struct {
		codec Values
		data  any // to be encoded by the library, or a string of JSON
		into  any
		want  string
	}{
		{CBOR, map[string]any{"window": map[string]any{"n": "x"}}, new(request), "at .window.n: an integer was expected, and a text string came"},
		{CBOR, map[string]any{"window": map[string]any{"n": 300}}, new(request), "at .window.n: an integer of 8 bits was expected, and 300 came"},
		{CBOR, map[string]any{"window": map[string]any{"at": true}}, new(request), "at .window.at: tag 0 or 1 (date) was expected, and a bool came"},
		{CBOR, map[string]any{"spans": []any{map[string]any{}, nil, map[string]any{"tags": []any{"a", 1}}}}, new(request), "at .spans[2].tags[1]: a text string was expected, and an integer came"},
		{CBOR, map[string]any{"window": map[string]any{"by": map[string]any{"k\n": []byte{1}}}}, new(request), `at .window.by["k\n"]: an integer was expected, and a byte string came`},
		{CBOR, map[string]any{"days": map[int]any{-3: "x"}}, new(request), "at .days[-3]: a float was expected, and a text string came"},
		{CBOR, map[string]any{"days": map[string]any{"x": 1.}}, new(request), "at .days[key of entry 0]: an integer was expected, and a text string came"},
		{CBOR, map[string]any{"blob": "text"}, new(request), "at .blob: a byte string was expected, and a text string came"},
		{CBOR, []any{1, 2}, new(listed), "at [1]: a text string was expected, and an integer came"},
		{CBOR, map[int]any{-2: []int{}}, new(byNumber), "at .-2: a text string was expected, and an array came"},
		{CBOR, map[string]any{"tags": 1.5}, new(embedding), "at .tags: an array was expected, and a float came"},
		{CBOR, []any{1, picky{}}, new([]picky), "at [0]: a value in a form of its own was expected, and an integer came"},
		{CBOR, cbor.Tag{Number: 100, Content: 1}, new(string), "a text string was expected, and tag 100 came"},
		{CBOR, map[string]any{"tags": cbor.Tag{Number: 100, Content: []any{"a", 1}}}, new(span), "at .tags[1]: a text string was expected, and an integer came"},
		{CBOR, []int{1}, new(listed), "an array of 2 was expected, and one of 1 came"},
		{CBOR, -1, new(uint16), "an integer of 16 bits from 0 on was expected, and -1 came"},
		{CBOR, "", new(request), "a map was expected, and a text string came"},
		{JSON, `{"window":{"n":"x"}}`, new(request), "at .window.n: a number was expected, and a string came"},
		{JSON, `{"Window":{"n":1.5}}`, new(request), "at .Window.n: an integer of 8 bits was expected, and 1.5 came"},
		{JSON, `{"window":{"at":"no date"}}`, new(request), "at .window.at: a string (date) was expected, and a string came"},
		{JSON, `{"spans":[{},null,{"tags":["a",{"b":[]}]}]}`, new(request), "at .spans[2].tags[1]: a string was expected, and an object came"},
		{JSON, `{"x":[{"]":"}"}],"window":{"by":{"\u0041":[]}}}`, new(request), `at .window.by["A"]: a number was expected, and an array came`},
		{JSON, `{"days":{"x":1}}`, new(request), "at .days[key of entry 0]: an integer of 64 bits was expected, and another text came"},
		{JSON, `{"blob":"?"}`, new(request), "at .blob: a string in base64 was expected, and a string came"},
		{JSON, `{"quoted":"5","blob":1}`, new(request), "at .blob: a string in base64 was expected, and a number came"},
		{JSON, `{"quoted":5}`, new(request), "at .quoted: a string with a value in it was expected, and a number came"},
		{JSON, `{"quoted":"x"}`, new(request), "at .quoted: a string with a value in it was expected, and a string came"},
		{JSON, `{"tags":true}`, new(embedding), "at .tags: an array was expected, and a boolean came"},
		{JSON, `[1]`, new([]picky), "at [0]: a value in a form of its own was expected, and a number came"},
	} {
		data, err := cbor.Marshal(c.data)
		require.NoError(t, err)
		if c.codec == JSON {
			data = []byte(c.data.(string))
		}
		var e *TypeError
		require.ErrorAs(t, c.codec.Decode(data, c.into), &e, c.want)
		require.Contains(t, e.Text(), c.want)
	}
}

// A long path leaves room for the rest of the error text.
func TestMismatch_LongPath(t *testing.T) {
	type deep []deep
	var e *TypeError
	data := strings.Repeat("[", 2000) + "1" + strings.Repeat("]", 2000)
	require.ErrorAs(t, JSON.Decode([]byte(data), new(deep)), &e)
	require.LessOrEqual(t, len(e.Text()), MaxReason)
	require.Regexp(t, `^at …\[0\](\[0\])*: an array was expected, and a number came$`, e.Text())
}

// The search for the place is bounded.
func TestMismatch_SearchBounded(t *testing.T) {
	data := []byte("[" + strings.Repeat("1,", 100_000) + `"x"]`)
	err := JSON.Decode(data, new([]int))
	var e *TypeError
	require.ErrorAs(t, err, &e)
	require.Equal(t, "a value of another type was expected, and JSON string came", e.Text())
}

// samples are values of many types; intos are those types and some types that no data can be
// decoded into.
var samples = []any{
	nil, true, int8(-5), 300, uint64(1 << 63), 1.5, 1e300, "text", "5", []byte("bytes"), []int{1, 300}, []any{1, "a", nil, []any{}}, map[string]int{"a": 1}, map[string]any{"n": "x", "a": []any{1}},
	map[string]string{"1": "x"}, time.Unix(1, 2).UTC(), big.NewInt(5), span{N: 3, Tags: []string{"x"}, By: map[string]int{"k": 2}}, request{Spans: []*span{{N: 1}}, Blob: []byte{1}, Quoted: 7}, listed{A: 1, B: "b"}, byNumber{A: 1, B: "b"},
	embedding{More: true}, picky{}, json.Number("12"), []map[string][]bool{{"x": {true}}}, [2]string{"a", "b"}, [][]byte{{1}}, []picky{{}}, []*picky{nil, {}}, map[string]picky{"p": {}},
}

var intos = []reflect.Type{
	reflect.TypeFor[float32](), reflect.TypeFor[uint16](), reflect.TypeFor[uintptr](), reflect.TypeFor[[4]byte](), reflect.TypeFor[[2]int](), reflect.TypeFor[map[int]bool](), reflect.TypeFor[map[picky]int](), reflect.TypeFor[map[[2]int]string](),
	reflect.TypeFor[**int64](), reflect.TypeFor[*request](), reflect.TypeFor[any](), reflect.TypeFor[error](), reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[chan int](), reflect.TypeFor[func()](), reflect.TypeFor[complex128](), reflect.TypeFor[cbor.RawMessage](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[cbor.ByteString](), reflect.TypeFor[time.Duration](), reflect.TypeFor[struct{ F func() }](), reflect.TypeFor[[]error](), reflect.TypeFor[map[string]chan int](), reflect.TypeFor[big.Int](), reflect.TypeFor[*big.Float](),
}

// ofGo matches text that must not be sent to the peer.
var ofGo = regexp.MustCompile(`struct|interface|u?int(8|16|32|64|ptr)\b|float(32|64)|\bfunc\b|\bchan\b|\*|map\[|\[\]|json:|cbor:|Unmarshal|main\.|codec\.|asterisque\.|big\.|time\.|reflect|span|request|picky|listed|byNumber|embedding`)

// TestMismatch_NoGoTypes decodes every sample as every type, and encodes values without an
// encoding: no error text has Go types.
func TestMismatch_NoGoTypes(t *testing.T) {
	types := intos
	for _, v := range samples[1:] {
		types = append(types, reflect.TypeOf(v))
	}
	failed := 0
	told := func(err error) {
		if err == nil {
			return
		}
		failed++
		var text interface{ Text() string }
		require.ErrorAs(t, err, &text)
		require.NotRegexp(t, ofGo, text.Text())
		require.NotContains(t, text.Text(), "a value of another type", "the place is found")
	}
	for _, c := range []Values{CBOR, JSON, Raw} {
		for _, v := range samples {
			data, err := c.Append(nil, v)
			told(err)
			if err != nil {
				data = []byte("x")
			}
			for _, to := range types {
				told(c.Decode(data, reflect.New(to).Interface()))
			}
		}
		for _, v := range []any{make(chan int), func() {}, []any{complex(1, 1)}, map[string]any{"x": make(chan int)}, struct{ F func() }{func() {}}} {
			_, err := c.Append(nil, v)
			require.Error(t, err)
			told(err)
		}
		for _, data := range []string{"", "\xff", "\x62a", "{", `{"a":}`, "1 2", "\xa2\x01\x01\x01\x01", "\x62\xc3\x28", "\xc3\x28", strings.Repeat("\x81", 40)} {
			for _, to := range types {
				told(c.Decode([]byte(data), reflect.New(to).Interface()))
			}
		}
	}
	require.Greater(t, failed, 2000)
}

// TestMismatch_OnlyIfOne decodes every sample as every type, as the libraries do: a place is found
// only if there is a mismatch.
func TestMismatch_OnlyIfOne(t *testing.T) {
	types := intos
	for _, v := range samples[1:] {
		types = append(types, reflect.TypeOf(v))
	}
	for _, v := range samples {
		for _, to := range types {
			data, err := CBOR.Append(nil, v)
			require.NoError(t, err)
			if CBOR.Decode(data, reflect.New(to).Interface()) == nil {
				require.Nil(t, explainCBOR(data, to, CBOR.(cborValues).dec.Unmarshal), "CBOR %v as %v", v, to)
			}
			data, err = JSON.Append(nil, v)
			require.NoError(t, err)
			if JSON.Decode(data, reflect.New(to).Interface()) == nil {
				require.Nil(t, explainJSON(data, to), "JSON %s as %v", data, to)
			}
		}
	}
}

// FuzzExplain explains bytes that match no type. The function ends, and panics no more than the
// libraries.
func FuzzExplain(f *testing.F) {
	for _, v := range samples {
		data, _ := CBOR.Append(nil, v)
		f.Add(data)
		data, _ = JSON.Append(nil, v)
		f.Add(data)
	}
	types := append(intos, reflect.TypeFor[request](), reflect.TypeFor[listed](), reflect.TypeFor[byNumber](), reflect.TypeFor[[]picky](), reflect.TypeFor[map[string]span]())
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range []Values{CBOR, JSON} {
			for _, to := range types {
				var text interface{ Text() string }
				if err := c.Decode(data, reflect.New(to).Interface()); err != nil {
					require.ErrorAs(t, err, &text)
					require.LessOrEqual(t, len(text.Text()), MaxReason)
				}
			}
		}
	})
}

// TestExplain_Bounded counts allocations for a value that would need too many attempts.
func TestExplain_Bounded(t *testing.T) {
	var v []request
	long := func(n int) []byte {
		return []byte(`[{` + strings.Repeat(`"quoted":"5",`, n) + `"quoted":"x"}]`)
	}
	cost := func(data []byte) float64 {
		return testing.AllocsPerRun(1, func() { explainJSON(data, reflect.TypeOf(v)) })
	}
	most := cost(long(mostTrials))
	more := cost(long(4 * mostTrials))
	require.Less(t, more-most, 2*3.*mostTrials, "%v allocations, and %v for four times as much", most, more)
}
