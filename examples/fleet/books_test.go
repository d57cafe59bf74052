package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// booksOf returns the books of a depot and of a replica.
func booksOf(t *testing.T, depot, replica []string) *books {
	b := newBooks()
	for name, lines := range map[string][]string{depotsName: depot, ordersName: replica} {
		for _, line := range lines {
			require.NoError(t, b.take(name, line))
		}
	}
	return b
}

// The books record the fate of each call.
func TestBooks_Fates(t *testing.T) {
	for what, test := range map[string]struct {
		caller, callee []string
		want           balance
	}{
		"answered":                  {[]string{"made a 1", "answered a 1"}, []string{"ran a 1"}, balance{made: 1, answered: 1}},
		"failed, and has run":       {[]string{"made a 1", "failed a 1 gone"}, []string{"ran a 1"}, balance{made: 1, failed: map[string]int{"gone, and may have run": 1}}},
		"failed, and has not run":   {[]string{"made a 1", "failed a 1 gone"}, nil, balance{made: 1, failed: map[string]int{"gone, and may have run": 1}}},
		"refused":                   {[]string{"made a 1", "refused a 1 full"}, nil, balance{made: 1, failed: map[string]int{"full, and did not run": 1}}},
		"refused, and has run":      {[]string{"made a 1", "refused a 1 full"}, []string{"ran a 1"}, balance{made: 1, untrue: 1, failed: map[string]int{"full, and did not run": 1}}},
		"answered, and has not run": {[]string{"made a 1", "answered a 1"}, nil, balance{made: 1, answered: 1, lost: 1}},
		"never ended":               {[]string{"made a 1"}, []string{"ran a 1"}, balance{made: 1, lost: 1}},
		"never made":                {nil, []string{"ran a 1"}, balance{lost: 1}},
		"twice":                     {[]string{"made a 1", "answered a 1"}, []string{"ran a 1", "ran a 1"}, balance{made: 1, answered: 1, doubled: 1}},
		"three times":               {[]string{"made a 1", "answered a 1"}, []string{"ran a 1", "ran a 1", "ran a 1"}, balance{made: 1, answered: 1, doubled: 1}},
		"through the exchange":      {[]string{"made a 1 through the exchange", "answered a 1"}, []string{"ran a 1"}, balance{made: 1, answered: 1, exchanged: 1}},
		"to the exchange":           {[]string{"made a 1", "answered a 1"}, []string{"ran a 1 through the exchange"}, balance{made: 1, answered: 1, exchanged: 1}},
		"answered from a record":    {[]string{"made a 1", "noted a 1 again", "answered a 1"}, []string{"ran a 1", "noted a 1 from a record"}, balance{made: 1, answered: 1}},
		"an unused number":          {[]string{"made a 2", "answered a 2"}, []string{"ran a 2"}, balance{made: 1, answered: 1}},
	} {
		require.Equal(t, test.want, booksOf(t, test.caller, test.callee).balance(depotsName), what)
		require.Equal(t, test.want, booksOf(t, test.callee, test.caller).balance(ordersName), what)
	}
}

// The books count notes.
func TestBooks_Notes(t *testing.T) {
	b := booksOf(t, []string{"noted a 1 again", "noted b 7 again"}, []string{"noted orders-a 1 resumed there"})
	require.Equal(t, map[string]int{"again": 2, "resumed there": 1}, b.noted)
	require.Zero(t, b.balance(depotsName).lost, "a note is no call")
}

// A balance is valid only without losses and with answers.
func TestBalance_Check(t *testing.T) {
	for want, b := range map[string]balance{
		"1 calls of agents ran twice":                  {made: 9, answered: 9, doubled: 1},
		"2 calls of agents were lost":                  {made: 9, answered: 9, lost: 2},
		"1 calls of agents ran, and failed":            {made: 9, answered: 9, untrue: 1},
		"agents have made no calls":                    {},
		"of 100 calls of agents only 94 were answered": {made: 100, answered: 94},
	} {
		require.ErrorContains(t, b.check("agents"), want)
	}
	good := balance{made: 100, answered: 95}
	require.NoError(t, good.check("agents"))
}

// The books reject an impossible line.
func TestBooks_ImpossibleLine(t *testing.T) {
	for _, line := range []string{"", "made a", "made a 0", "made a 10000001", "lost a 1"} {
		require.ErrorContains(t, newBooks().take(ordersName, line), line)
	}
}
