package flowmodel_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/flowmodel"
)

type broken = flowmodel.Broken

// without are the rules, each with a session that fails without it.
var without = []struct {
	broken broken
	seed   uint64
}{
	{broken{NestedWait: true}, 5},
	{broken{NoLending: true}, 5},
	{broken{QueueFirst: true}, 25},
	{broken{HalfCredit: true}, 11},
	{broken{ForgetCredit: true}, 259},
	{broken{ReturnEarly: true}, 863},
	{broken{AnswersPass: true}, 837},
	{broken{LeftForgotten: true}, 2439},
	{broken{Overshoot: true}, 45},
	{broken{GrowAnywhere: true}, 51},
	{broken{NoAsks: true}, 5},
	{broken{LowerAsks: true}, 61},
	{broken{StaleAsks: true}, 471},
	{broken{LoseAsks: true}, 454},
	{broken{AllowEarly: true}, 11},
	{broken{KeepAllows: true}, 187},
	{broken{AbandonAllows: true}, 45},
	{broken{SettleLate: true}, 14360},
	{broken{EndedKeeps: true}, 20},
	{broken{LeftUnpaid: true}, 539},
}

// enough is for how many sessions, from the given one on, a rule may seem to be of no use.
const enough = 2000

func TestWithoutAnyRuleSomeSessionFails(t *testing.T) {
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
