package asterisque

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// numbers calls f for every number in v, with its path.
func numbers(v reflect.Value, path string, f func(path string, n reflect.Value)) {
	if v.Kind() != reflect.Struct {
		f(path, v)
		return
	}
	for i := range v.NumField() {
		numbers(v.Field(i), path+"."+v.Type().Field(i).Name, f)
	}
}

// TestNodeStats_TotalComplete sets every number of a session, and looks for it in the total.
func TestNodeStats_TotalComplete(t *testing.T) {
	var one, total Stats
	numbers(reflect.ValueOf(&one).Elem(), "", func(_ string, n reflect.Value) { n.Set(reflect.ValueOf(3).Convert(n.Type())) })
	one.Path = Path{} // a node has many paths
	total.add(&one)
	require.Equal(t, one, total, "the sum over one session")
	total.add(&one)
	highest := map[string]bool{
		".MostWaiting": true, ".MostRunning": true, ".MostInbound.Messages": true, ".MostInbound.Bytes": true,
		".MostOutbound.Messages": true, ".MostOutbound.Bytes": true, ".InboundState": true, ".OutboundState": true,
	}
	numbers(reflect.ValueOf(total), "", func(path string, n reflect.Value) {
		want := 6
		switch {
		case highest[path]:
			want = 3
		case strings.HasPrefix(path, ".Path."):
			want = 0
		}
		require.EqualValues(t, want, n.Convert(reflect.TypeFor[int]()).Int(), path)
	})

	stays := map[string]bool{
		".Made": true, ".Served": true, ".Stops": true, ".Stopped": true,
		".WaitWindow.Times": true, ".WaitWindow.For": true, ".WaitOpens.Times": true, ".WaitOpens.For": true,
		".WaitOutbound.Times": true, ".WaitOutbound.For": true,
	}
	one.end()
	numbers(reflect.ValueOf(one), "", func(path string, n reflect.Value) {
		require.Equal(t, stays[path], !n.IsZero(), "%s of a session that has ended", path)
	})
}
