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
		before coalescer
		turn   time.Duration
		had    bool
		after  coalescer
	}{
		{"short and in vain", coalescer{}, short, false, coalescer{}},
		{"long, and a sender came", coalescer{}, long, true, coalescer{}},
		{"long and in vain", coalescer{}, long, false, coalescer{vain: 1, skip: 3}},
		{"once more", coalescer{vain: 1}, long, false, coalescer{vain: 2, skip: 15}},
		{"and again", coalescer{vain: 2}, long, false, coalescer{vain: 3, skip: 63}},
		{"for ever", coalescer{vain: 3}, time.Hour, false, coalescer{vain: 3, skip: 63}},
		{"short after long ones", coalescer{vain: 3}, short, false, coalescer{}},
		{"company after long ones", coalescer{vain: 3}, long, true, coalescer{}},
	} {
		require.Equal(t, c.after, c.before.next(c.turn, c.had), c.name)
	}
}

func TestCompany_ManyFrames(t *testing.T) {
	require.False(t, manyFrames([]byte{0, 0, 0, 2, 'a', 'b'}))
	require.True(t, manyFrames([]byte{0, 0, 0, 1, 'a', 0, 0, 0, 0}))
	require.True(t, manyFrames([]byte{0, 1, 0, 0, 'a'}), "its payload is beside it")
}
