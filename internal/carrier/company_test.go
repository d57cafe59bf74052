package carrier

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCompany_WhileItPays(t *testing.T) {
	const long, short = longTurn, longTurn - 1
	for _, c := range []struct {
		name   string
		before company
		turn   time.Duration
		had    bool
		after  company
	}{
		{"short and in vain", company{}, short, false, company{}},
		{"long, and a sender came", company{}, long, true, company{}},
		{"long and in vain", company{}, long, false, company{vain: 1, skip: 3}},
		{"once more", company{vain: 1}, long, false, company{vain: 2, skip: 15}},
		{"and again", company{vain: 2}, long, false, company{vain: 3, skip: 63}},
		{"for ever", company{vain: 3}, time.Hour, false, company{vain: 3, skip: 63}},
		{"short after long ones", company{vain: 3}, short, false, company{}},
		{"company after long ones", company{vain: 3}, long, true, company{}},
	} {
		require.Equal(t, c.after, c.before.next(c.turn, c.had), c.name)
	}
}

func TestCompany_ManyFrames(t *testing.T) {
	require.False(t, manyFrames([]byte{0, 0, 0, 2, 'a', 'b'}))
	require.True(t, manyFrames([]byte{0, 0, 0, 1, 'a', 0, 0, 0, 0}))
	require.True(t, manyFrames([]byte{0, 1, 0, 0, 'a'}), "its payload is beside it")
}
