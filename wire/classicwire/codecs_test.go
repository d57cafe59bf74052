package classicwire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/classic"
)

// closeHead is the minimum number of bytes of a Close before its result.
var closeHead = map[classic.Codec]int{classic.MessagePack: 3, classic.Simple: 4}

// largestText is the maximum number of bytes of a text that is the only parameter of one of the
// first calls.
var largestText = map[classic.Codec]int{classic.MessagePack: 65_498, classic.Simple: 65_496}

// largestResult is the maximum number of bytes of a text that is a result.
const largestResult = 65_500

// eachCodec runs a test with each codec.
func eachCodec(t *testing.T, test func(t *testing.T, form classic.Codec)) {
	for _, form := range []classic.Codec{classic.MessagePack, classic.Simple} {
		t.Run(form.Name(), func(t *testing.T) { test(t, form) })
	}
}

// recodeAll translates the messages at the start of b from one codec to another. Bytes after the
// last valid message stay as they are.
func recodeAll(t testing.TB, from, to classic.Codec, b []byte) (all []byte) {
	if from == to {
		return b
	}
	for len(b) > 0 {
		m, n, err := from.Parse(b, 1<<20)
		if err != nil {
			return append(all, b...)
		}
		recode(t, from, to, m)
		all, err = m.AppendTo(all, to)
		require.NoError(t, err)
		b = b[n:]
	}
	return all
}

// recode re-encodes the values of a message in another codec.
func recode(t testing.TB, from, to classic.Codec, m classic.Message) {
	switch m := m.(type) {
	case *classic.Open:
		var p classic.Params
		require.NoError(t, from.Decode(from.JoinParams(nil, m), &p))
		b, err := to.Append(nil, p)
		require.NoError(t, err)
		m.Count, m.Params, err = to.SplitParams(b)
		require.NoError(t, err)
	case *classic.Close:
		if m.Abort == nil {
			var v any
			require.NoError(t, from.Decode(m.Result, &v))
			b, err := to.Append(nil, v)
			require.NoError(t, err)
			m.Result = b
		}
	}
}
