package codec_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
)

// node is a tree that decodes itself, as many do that fill in a default or check a field: by
// package json, with a type that has no method. read counts the bytes.
type node struct {
	Children []node
	Text     string
	read     int
}

func (n *node) UnmarshalJSON(data []byte) error {
	type plain node
	err := json.Unmarshal(data, (*plain)(n))
	n.read = len(data)
	for i := range n.Children {
		n.read += n.Children[i].read
	}
	return err
}

// TestJSON_SelfDecodingLevels requires a bound of repeated reading, for deep values with a long
// innermost one.
func TestJSON_SelfDecodingLevels(t *testing.T) {
	const most = 32
	nested := func(depth, size int) string {
		return strings.Repeat(`{"Children":[`, depth) + `{"Text":"` + strings.Repeat("x", size) + `"}` + strings.Repeat("]}", depth)
	}
	for _, c := range []struct {
		depth, size int
		fits        bool
	}{{10, 1 << 20, true}, {100, 1 << 20, false}, {3000, 1 << 20, false}, {100, 1 << 10, true}, {500, 4 << 10, true}} {
		for name, into := range map[string]any{"alone": new(node), "in a list": new([]node), "in a field": new(struct{ N *node }), "in a map": new(map[string]any)} {
			t.Run(fmt.Sprintf("%d deep, %d bytes, %s", c.depth, c.size, name), func(t *testing.T) {
				data := nested(c.depth, c.size)
				switch into.(type) {
				case *[]node:
					data = "[{}," + data + "]"
				case *struct{ N *node }:
					data = `{"N":` + data + "}"
				}
				err := codec.JSON.Decode([]byte(data), into)
				if _, plain := into.(*map[string]any); c.fits || plain {
					require.NoError(t, err)
					if n, ok := into.(*node); ok {
						require.LessOrEqual(t, n.read, most*len(data)+16<<20)
					}
					return
				}
				var e *codec.ValueError
				require.ErrorAs(t, err, &e)
				require.Contains(t, e.Text(), "nested too deeply for a type that decodes itself")
			})
		}
	}
	deep := []byte(nested(3000, 1<<20))
	raw := new(json.RawMessage)
	require.NoError(t, codec.JSON.Decode(deep, raw), "it only copies")
	require.Equal(t, deep, []byte(*raw))
}

// TestJSON_ExponentsOfFloats requires that a big.Float which arrives, or is sent, is one that can
// be written: a few bytes may stand for 600 million digits.
func TestJSON_ExponentsOfFloats(t *testing.T) {
	for exponent, fits := range map[int]bool{0: true, 300: true, 9999: true, 10_000: true, 10_001: false, 600_000_000: false} {
		for _, sign := range []int{1, -1} {
			text := fmt.Sprintf("1e%+d", sign*exponent)
			t.Run(text, func(t *testing.T) {
				err := codec.JSON.Decode([]byte(`"`+text+`"`), new(big.Float))
				if fits {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, fmt.Sprintf("one with the exponent %d came", exponent))
				}
				if exponent > 20_000 {
					_, err = codec.JSON.Append(nil, new(big.Float).SetMantExp(big.NewFloat(1), 3*sign*exponent))
					require.ErrorContains(t, err, "a floating-point number with the exponent")
				}
			})
		}
	}
	for exponent, fits := range map[string]bool{"1e10000": true, "9.5e10000": true, "1e10001": false, "1e-10000": true, "1e-10001": false} {
		n, _, err := big.ParseFloat(exponent, 10, 64, big.ToNearestEven)
		require.NoError(t, err)
		data, err := codec.JSON.Append(nil, n)
		require.Equal(t, fits, err == nil, "%s: %v", exponent, err)
		if fits {
			got := new(big.Float)
			require.NoError(t, codec.JSON.Decode(data, got))
			require.Zero(t, n.Cmp(got))
		}
	}
}
