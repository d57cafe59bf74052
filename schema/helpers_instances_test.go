package schema

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// instances draws JSON values.
type instances struct {
	*rand.Rand
	*converter
	root document
}

func newInstances(seed uint64, root document) *instances {
	return &instances{rand.New(rand.NewPCG(seed, 1)), newConverter(root), root}
}

// mostDeep is the maximum nesting of values; the codec accepts at most 32.
const mostDeep = 6

func pick[T any](r *instances, list []T) T { return list[r.IntN(len(list))] }

// allowed draws a value that a schema allows.
func (r *instances) allowed(schema any, depth int) any {
	if schema == true || schema == nil {
		return r.anything(depth)
	}
	s := r.resolve(schema)
	if several, ok := s["anyOf"].([]any); ok {
		return r.allowed(pick(r, several), depth)
	}
	types := []string{}
	for _, t := range []string{"null", "boolean", "integer", "number", "string", "array", "object"} {
		if allows(s, t) {
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return r.anything(depth)
	}
	typ := pick(r, types)
	if slices.Contains(types, "null") && (depth <= 0 || r.IntN(10) == 0) {
		typ = "null"
	} else if typ == "null" {
		typ = types[0]
	}
	switch typ {
	case "boolean":
		return r.IntN(2) == 0
	case "integer":
		return r.integer(s)
	case "number":
		return r.floating(s)
	case "string":
		return r.text(s)
	case "array":
		return r.list(s, depth)
	case "object":
		return r.object(s, depth)
	}
	return nil
}

// integer draws an integer within the bounds, which it often draws themselves.
func (r *instances) integer(s document) json.Number {
	low, high := big.NewInt(-1<<40), big.NewInt(1<<40)
	if s["minimum"] != nil {
		low, _ = new(big.Int).SetString(string(s["minimum"].(json.Number)), 10)
		high, _ = new(big.Int).SetString(string(s["maximum"].(json.Number)), 10)
	} else if r.IntN(3) == 0 {
		return "123456789012345678901234567890"
	}
	switch r.IntN(4) {
	case 0:
		return json.Number(low.String())
	case 1:
		return json.Number(high.String())
	}
	width := new(big.Int).Sub(high, low)
	n := new(big.Int).SetUint64(r.Uint64())
	n.Add(n.Mod(n, width), low)
	if r.IntN(8) == 0 && n.BitLen() < 50 {
		return json.Number(n.String() + ".0")
	}
	return json.Number(n.String())
}

func (r *instances) floating(s document) json.Number {
	list := []json.Number{"0", "-0", "0.5", "-1.25", "1e3", "123456", "-9007199254740993", "18446744073709551615", "1e-30", "3.4028234663852886e+38"}
	if s["maximum"] == nil {
		list = append(list, "1.7976931348623157e+308", "-12345678901234567890123", "18446744073709551616")
	} else if strings.HasPrefix(string(s["maximum"].(json.Number)), "9") { // of seconds
		list = []json.Number{"0", "1.5", "-1e9", "9223372036854775807", "-9223372036854775808"}
	}
	return pick(r, list)
}

// times are texts that Go accepts as times, some of which RFC 3339 does not allow.
var times = []string{
	"2024-02-29T23:59:59Z", "1970-01-01T00:00:00.123456789+05:30", "2000-02-29T00:00:00-23:59", "0000-02-29T00:00:00Z",
	"9999-12-31T12:00:00Z", "2023-04-30T1:02:03Z", "2023-10-31T10:00:00,5Z", "2023-10-31T10:00:00+24:60",
}

func (r *instances) text(s document) string {
	switch {
	case s["contentEncoding"] != nil:
		b := make([]byte, r.IntN(20))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(b)
	case s["format"] == "date-time":
		return pick(r, times)
	case s["pattern"] != nil:
		return pick(r, matching(s["pattern"].(string), texts))
	}
	return pick(r, []string{"", "a", "zwölf ∗ 🌟", "12", "\x00", "2024-02-29T23:59:59Z", "QUJD"})
}

func (r *instances) list(s document, depth int) []any {
	prefix, _ := s["prefixItems"].([]any)
	length := r.IntN(5)
	if s["minItems"] != nil {
		n, _ := s["minItems"].(json.Number).Int64()
		length = int(n)
	} else if len(prefix) > 0 {
		length = r.IntN(len(prefix) + 3)
	}
	list := make([]any, length)
	for i := range list {
		of := s["items"]
		if i < len(prefix) {
			of = prefix[i]
		}
		list[i] = r.allowed(of, depth-1)
	}
	return list
}

func (r *instances) object(s document, depth int) document {
	object := document{}
	properties, _ := s["properties"].(document)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if r.IntN(4) > 0 {
			object[name] = r.allowed(properties[name], depth-1)
		}
	}
	names := texts
	if p, ok := s["propertyNames"].(document); ok {
		names = matching(p["pattern"].(string), texts)
	}
	for range r.IntN(4) {
		if name := pick(r, names); properties[name] == nil {
			object[name] = r.allowed(s["additionalProperties"], depth-1)
		}
	}
	return object
}

// texts are keys and other short texts: integers at the bounds of types, and further texts.
var texts = func() (list []string) {
	for _, bits := range []uint{0, 7, 8, 15, 16, 31, 32, 63, 64} {
		n := new(big.Int).Lsh(big.NewInt(1), bits)
		for d := range int64(3) {
			m := new(big.Int).Add(n, big.NewInt(d-1))
			list = append(list, m.String(), m.Neg(m).String())
		}
	}
	for n := range 300 {
		list = append(list, strconv.Itoa(n), strconv.Itoa(-n))
	}
	return append(list, "", "a", "A", "name", "NAME", "Name", "value", "VALUE", "01", "-0", "+1", "1.0", " 1", "1e3", "🌟", "21C", "-300C", "x")
}()

func matching(pattern string, list []string) []string {
	re := regexp.MustCompile(pattern)
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !re.MatchString(s) })
}

// anything draws any JSON value.
func (r *instances) anything(depth int) any {
	kinds := 12
	if depth <= 0 {
		kinds = 8
	}
	switch n := r.IntN(kinds); n {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2, 3:
		return pick(r, []json.Number{
			"0", "1", "-1", "127", "128", "-128", "-129", "255", "256", "32767", "32768", "-32768", "-32769", "65535", "65536",
			"2147483647", "2147483648", "-2147483648", "-2147483649", "4294967295", "4294967296",
			"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
			"18446744073709551615", "18446744073709551616", "-18446744073709551616", "-18446744073709551617",
			"123456789012345678901234567890", "1.5", "-0.25", "1e3", "12.0", "1e39", "-1e39", "3.5e38", "1e300",
		})
	case 4:
		return pick(r, texts)
	case 5:
		return pick(r, times)
	case 6:
		return pick(r, []string{
			"2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2023-04-31T00:00:00Z", "2023-13-01T00:00:00Z", "2023-01-01T24:00:00Z",
			"2023-01-01T00:00:60Z", "2023-01-01t00:00:00z", "2023-01-01 00:00:00Z", "2023-01-01T00:00:00", "2023-01-01T00:00:00+25:00",
			"2023-01-01T00:00:00+00:61", "2023-01-01T00:00:00.Z", "23-01-01T00:00:00Z", "2023-01-01", "2023-00-01T00:00:00Z", "2023-01-00T00:00:00Z",
		})
	case 7:
		return pick(r, []string{"QUJD", "QQ==", "QQ=", "QQ", "Q?==", "QUI=", "-_==", "AAAAAAAA", "QR=="})
	case 8, 9:
		list := make([]any, r.IntN(5))
		for i := range list {
			list[i] = r.anything(depth - 1)
		}
		return list
	default:
		object := document{}
		for range r.IntN(4) {
			object[pick(r, texts)] = r.anything(depth - 1)
		}
		return object
	}
}

// changed returns v with a change somewhere in it.
func (r *instances) changed(v any, depth int) any {
	if r.IntN(3) == 0 {
		return r.other(v, depth)
	}
	switch v := v.(type) {
	case []any:
		if len(v) == 0 {
			break
		}
		list := slices.Clone(v)
		i := r.IntN(len(list))
		switch r.IntN(6) {
		case 0:
			return slices.Delete(list, i, i+1)
		case 1:
			return slices.Insert(list, i, r.anything(depth-1))
		}
		list[i] = r.changed(list[i], depth-1)
		return list
	case document:
		if len(v) == 0 {
			break
		}
		object := maps.Clone(v)
		name := pick(r, slices.Sorted(maps.Keys(object)))
		switch r.IntN(6) {
		case 0: // under another name
			object[pick(r, []string{strings.ToUpper(name), strings.ToLower(name), "0" + name, "-" + name, name + "0", pick(r, texts)})] = object[name]
			delete(object, name)
		case 1:
			object[pick(r, texts)] = r.anything(depth - 1)
		default:
			object[name] = r.changed(object[name], depth-1)
		}
		return object
	}
	return r.other(v, depth)
}

// other returns a value that is similar to v, or a completely different one.
func (r *instances) other(v any, depth int) any {
	switch v := v.(type) {
	case json.Number:
		if n, ok := new(big.Int).SetString(string(v), 10); ok && r.IntN(2) == 0 {
			return json.Number(n.Add(n, big.NewInt(int64(r.IntN(5))-2)).String())
		}
		if r.IntN(4) == 0 {
			return string(v)
		}
	case string:
		if at := runeStart(v, r.IntN(len(v)+1)); r.IntN(2) == 0 {
			return v[:at] + pick(r, []string{"0", "9", "T", "=", "ß", " ", "-"}) + v[at:]
		}
	}
	return r.anything(depth)
}

// runeStart returns the start of the character of s at a position.
func runeStart(s string, at int) int {
	for at > 0 && at < len(s) && s[at]&0xc0 == 0x80 {
		at--
	}
	return at
}

// show returns a value as JSON.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}
