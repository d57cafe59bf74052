package stdiowire

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

func TestStart_Suite(t *testing.T) {
	wiretest.Run(t, func(t *testing.T) (a, b wire.Wire) {
		there, in, err := os.Pipe()
		require.NoError(t, err)
		back, out, err := os.Pipe()
		require.NoError(t, err)
		return wire.FromConn(parentProcess{there, out}), wire.FromConn(parentProcess{back, in})
	})
}

// Only text of a child is quoted.
func TestStart_OnlyTextQuoted(t *testing.T) {
	for _, c := range []struct {
		pieces []string
		want   string
	}{
		{nil, ""},
		{[]string{"\x00\x00\x00\x05hello"}, ""},
		{[]string{"hi"}, "hi"},
		{[]string{"hel", "lo\n"}, "hello\n"},
		{[]string{"hi\x00"}, ""},
		{[]string{"hello\x00", "world"}, "hello"},
		{[]string{"Grüße, \x1b[1mWelt"}, "Grüße, \x1b[1mWelt"},
		{[]string{string(make([]byte, 100))}, ""},
	} {
		var q outputHead
		for _, p := range c.pieces {
			q.add([]byte(p))
		}
		require.Equal(t, c.want, q.String(), "%q", c.pieces)
	}
	var q outputHead
	for range 100 {
		q.add([]byte("long "))
	}
	require.Len(t, q.String(), mostQuoted)
}
