package cluster

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
)

func nil0(context.Context, int) (int, error) { return 0, nil }

func TestTools_EndpointNames(t *testing.T) {
	t.Parallel()
	svc := asterisque.NewService()
	for number, name := range []string{"plain", "a.b", "a b", "a_b_2", "", "größe", "a.b", "$SRV.*.>"} {
		asterisque.Func[int, int](uint16(number), name).Handle(svc, nil0)
	}
	var names []string
	for _, e := range shownEndpoints(svc, toolsInfo{}) {
		names = append(names, e.name)
	}
	require.Equal(t, []string{"plain", "a_b", "a_b_2", "a_b_2_3", "function_4", "gr__e", "a_b_6", "_SRV____"}, names)
}
