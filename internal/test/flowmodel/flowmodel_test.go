package flowmodel_test

import (
	"flag"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/flowmodel"
	"github.com/asterisque-go/asterisque/internal/test/race"
)

var (
	steps = flag.Int("steps", defaultSteps(), "random steps of the test of honest sessions")
	first = flag.Uint64("first", 1, "the seed of its first session")
)

func defaultSteps() int {
	if race.Enabled {
		return 200_000
	}
	return 1_500_000
}

func TestPlay_HonestSessions(t *testing.T) {
	var sum flowmodel.Counts
	sessions := 0
	for seed := *first; sum.Steps < *steps; seed++ {
		counts, fault := flowmodel.Play(flowmodel.Broken{}, seed)
		require.Empty(t, fault, "session %d", seed)
		sum.Add(counts)
		sessions++
	}
	t.Logf("%d sessions: %+v", sessions, sum)
	if *steps < 1_000_000 {
		return // rare events may not have happened
	}
	rare, fault := flowmodel.Play(flowmodel.Broken{}, 3196) // has a call that ends with Stalled
	require.Empty(t, fault)
	sum.Add(rare)
	all := reflect.ValueOf(sum)
	for i := range all.NumField() {
		require.NotZero(t, all.Field(i).Int(), "%s: it has never happened", all.Type().Field(i).Name)
	}
}
