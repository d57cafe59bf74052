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
	{broken{NestedWait: true}, 0},
	{broken{NoLending: true}, 0},
	{broken{QueueFirst: true}, 146},
	{broken{HalfCredit: true}, 6},
	{broken{ForgetCredit: true}, 3300},
	{broken{ReturnEarly: true}, 85},
	{broken{AnswersPass: true}, 75},
	{broken{LeftForgotten: true}, 436},
	{broken{Overshoot: true}, 45},
	{broken{GrowAnywhere: true}, 0},
	{broken{DropInitial: true}, 0},
	{broken{HalfWindows: true}, 227},
	{broken{ShrinkHeld: true}, 2650},
	{broken{NoPieces: true}, 5},
	{broken{SmallWait: true}, 9},
	{broken{ReserveWhole: true}, 53},
	{broken{PiecesExpire: true}, 6},
	{broken{StaleEnd: true}, 132},
	{broken{GivenUpFreed: true}, 11},
	{broken{GivenUpKept: true}, 53},
	{broken{GivenUpUnrenewed: true}, 13},
	{broken{NoLarge: true}, 11},
	{broken{GrantEarly: true}, 250},
	{broken{DebtStays: true}, 33},
	{broken{DebtKept: true}, 33},
	{broken{EndedKeeps: true}, 539},
	{broken{LeftUnpaid: true}, 1794},
	{broken{DebtTwice: true}, 33},
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
