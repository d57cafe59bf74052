package flowmodel_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/flowmodel"
)

type broken = flowmodel.Broken

// without lists the rules, each with a session that fails without it.
var without = []struct {
	broken broken
	seed   uint64
}{
	{broken{NestedWait: true}, 6},
	{broken{NoLending: true}, 7},
	{broken{QueueFirst: true}, 25},
	{broken{HalfCredit: true}, 5},
	{broken{ForgetCredit: true}, 3299},
	{broken{ReturnEarly: true}, 100},
	{broken{AnswersPass: true}, 73},
	{broken{LeftForgotten: true}, 4223},
	{broken{Overshoot: true}, 45},
	{broken{GrowAnywhere: true}, 51},
	{broken{DropInitial: true}, 0},
	{broken{NoAsks: true}, 5},
	{broken{LowerAsks: true}, 209},
	{broken{StaleAsks: true}, 1291},
	{broken{LoseAsks: true}, 162},
	{broken{AllowEarly: true}, 11},
	{broken{KeepAllows: true}, 53},
	{broken{AbandonAllows: true}, 33},
	{broken{SettleLate: true}, 56135},
	{broken{EndedKeeps: true}, 14},
	{broken{LeftUnpaid: true}, 558},
}

// enough is the number of sessions, from the given one on, in which a missing rule has to cause a
// failure.
const enough = 2000

func TestBroken_EachRuleIsNeeded(t *testing.T) {
	all := reflect.TypeFor[broken]()
	require.Len(t, without, all.NumField(), "each rule has its session")
	for i, c := range without {
		name := all.Field(i).Name
		require.True(t, reflect.ValueOf(c.broken).Field(i).Bool(), "%s is the next rule", name)
		t.Run(name, func(t *testing.T) {
			seed := failing(t, c.broken, c.seed)
			_, fault := flowmodel.Play(broken{}, seed)
			require.Empty(t, fault, "with all rules, session %d", seed)
		})
	}
}

// failing returns the first session that fails, from seed on.
func failing(t *testing.T, b broken, seed uint64) uint64 {
	for last := seed + enough; seed < last; seed++ {
		if _, fault := flowmodel.Play(b, seed); fault != "" {
			return seed
		}
	}
	t.Fatalf("none of %d sessions fails", enough)
	return 0
}
