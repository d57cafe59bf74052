package schema

import (
	"math"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

func TestSchema_Golden(t *testing.T) {
	for _, c := range []struct {
		of            reflect.Type
		input, output string
	}{
		{reflect.TypeFor[bool](), `"type":["boolean","null"]`, `"type":"boolean"`},
		{reflect.TypeFor[int8](), `"maximum":127,"minimum":-128,"type":["integer","null"]`, `"type":"integer","maximum":127,"minimum":-128`},
		{reflect.TypeFor[uint64](), `"maximum":18446744073709551615,"minimum":0,"type":["integer","null"]`, `"type":"integer","maximum":18446744073709551615,"minimum":0`},
		{reflect.TypeFor[*float64](), `"type":["number","null"]`, `"type":["number","null"]`},
		{reflect.TypeFor[[]string](), `"items":{"type":["string","null"]},"type":["array","null"]`, `"items":{"type":"string"},"type":["array","null"]`},
		{reflect.TypeFor[[2]bool](), `"$defs":{"bool":{"type":["boolean","null"]}},"prefixItems":[{"$ref":"#/$defs/bool"},{"$ref":"#/$defs/bool"}],"type":["array","null"]`,
			`"items":{"type":"boolean"},"type":"array","maxItems":2,"minItems":2`},
		{reflect.TypeFor[[5]byte](), "", `"type":"string","maxLength":8,"minLength":8,"contentEncoding":"base64"`},
		{reflect.TypeFor[map[string]any](), `"additionalProperties":true,"type":["object","null"]`, `"additionalProperties":true,"type":["object","null"]`},
		{reflect.TypeFor[map[uint8]bool](), `"additionalProperties":{"type":["boolean","null"]},` +
			`"propertyNames":{"pattern":"^(0|[1-9][0-9]{0,1}|[1-1][0-9]{2}|2[0-4][0-9]{1}|25[0-4]|255)$","x-cbor-key":"integer"},"type":["object","null"]`, ""},
		{reflect.TypeFor[time.Time](), "", `"format":"date-time","type":["string","null"]`},
		{reflect.TypeFor[struct{}](), `"properties":{},"type":["object","null"]`, `"properties":{},"type":"object"`},
		{reflect.TypeOf(plain{hidden: 1}), "", `"properties":{"Name":{"type":"string"},"Count":{"type":"integer","maximum":9223372036854775807,"minimum":-9223372036854775808}},` +
			`"type":"object","required":["Name","Count"]`},
		{reflect.TypeFor[listed](), "", `"prefixItems":[{"type":"integer","maximum":127,"minimum":-128,"description":"to the right"},` +
			`{"maximum":127,"minimum":-128,"type":["integer","null"]},{"type":"string"},{"contentEncoding":"base64","type":["string","null"]}],` +
			`"type":"array","maxItems":4,"minItems":4,"description":"a point with a name"`},
		{reflect.TypeFor[*tree](), "", `"$defs":{"tree":{"properties":{"name":{"type":"string"},` +
			`"children":{"items":{"$ref":"#/$defs/tree"},"type":["array","null"]},` +
			`"named":{"additionalProperties":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]},"type":["object","null"]}},` +
			`"type":"object","required":["name","named"]}},"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]`},
		{reflect.TypeFor[struct {
			A page[int8] `doc:"first"`
			B page[bool]
		}](), "", `"$defs":{"page":{"properties":{"items":{"items":{"type":"integer","maximum":127,"minimum":-128},"description":"what is on the page","type":["array","null"]},` +
			`"next":{"maximum":127,"minimum":-128,"type":["integer","null"]}},"type":"object","required":["items"]},` +
			`"page2":{"properties":{"items":{"items":{"type":"boolean"},"description":"what is on the page","type":["array","null"]},"next":{"type":["boolean","null"]}},` +
			`"type":"object","required":["items"]}},"properties":{"A":{"$ref":"#/$defs/page","description":"first"},"B":{"$ref":"#/$defs/page2"}},"type":"object","required":["A","B"]`},
	} {
		input, err := New().Input(c.of)
		require.NoError(t, err)
		output, err := New().Output(c.of)
		require.NoError(t, err)
		for _, s := range []struct{ want, got string }{{c.input, string(input)}, {c.output, string(output)}} {
			if s.want != "" {
				require.Equal(t, `{"$schema":"`+draft+`",`+s.want+`}`, s.got, "%v", c.of)
			}
		}
	}
}

func TestKeys_Patterns(t *testing.T) {
	for _, c := range []struct {
		least, most int64
	}{{0, 9}, {0, 10}, {-1, 1}, {math.MinInt8, math.MaxInt8}, {0, math.MaxUint8}, {-1000, 1099}, {math.MinInt16, math.MaxInt16}} {
		re := regexp.MustCompile(between(strconv.FormatInt(c.least, 10), strconv.FormatInt(c.most, 10)))
		for n := int64(-40_000); n <= 40_000; n++ {
			require.Equal(t, c.least <= n && n <= c.most, re.MatchString(strconv.FormatInt(n, 10)), "%d of %d to %d", n, c.least, c.most)
		}
		for _, no := range []string{"", "-", "-0", "00", "01", "+1", "1.0", " 1", "1 ", "1\n", "x", "0x1"} {
			require.False(t, re.MatchString(no), "%q", no)
		}
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[int32](), reflect.TypeFor[uint32](), reflect.TypeFor[int64](), reflect.TypeFor[uint64]()} {
		least, most := bounds(typ)
		re := regexp.MustCompile(between(least, most))
		for _, bound := range []string{least, most} {
			n, _ := new(big.Int).SetString(bound, 10)
			for d := range int64(41) {
				m := new(big.Int).Add(n, big.NewInt(d-20))
				fits := m.Cmp(integer(least)) >= 0 && m.Cmp(integer(most)) <= 0
				require.Equal(t, fits, re.MatchString(m.String()), "%v of %v", m, typ)
			}
			require.False(t, re.MatchString(strings.TrimPrefix(bound, "-")+"0"))
		}
	}
}

func integer(s string) *big.Int {
	n, _ := new(big.Int).SetString(s, 10)
	return n
}

func TestSchema_Deterministic(t *testing.T) {
	s := New(As[celsius](celsiusSchema))
	want := make([]asterisque.Schema, len(contracts))
	for i, c := range contracts {
		var err error
		want[i], err = s.Input(c.typ)
		require.NoError(t, err)
	}
	var making sync.WaitGroup
	for range 4 {
		making.Go(func() {
			for i, c := range contracts {
				if got, err := s.Input(c.typ); err != nil || got != want[i] {
					t.Errorf("%v: %s, %v", c.typ, got, err)
				}
			}
		})
	}
	making.Wait()
}
