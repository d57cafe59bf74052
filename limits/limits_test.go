package limits_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/leak"
	"github.com/asterisque-go/asterisque/limits"
)

func TestMain(m *testing.M) { leak.Main(m) }

func TestCheck_FillsInLow(t *testing.T) {
	l, err := limits.Limits{Soft: limits.Amount{Messages: 10, Bytes: 1000}, Low: limits.Amount{Bytes: 900}}.Check()
	require.NoError(t, err)
	require.Equal(t, limits.Amount{Messages: 5, Bytes: 900}, l.Low, "half of soft where none is given")
}

func TestCheck_NamesInvalidMark(t *testing.T) {
	for _, c := range []struct {
		name string
		l    limits.Limits
		want string // "" if it fits
	}{
		{"no limits at all", limits.Limits{}, ""},
		{"hard only", limits.Limits{Hard: limits.Amount{Messages: 1}}, ""},
		{"soft only", limits.Limits{Soft: limits.Amount{Bytes: 1}}, ""},
		{"soft just below hard", limits.Limits{Soft: limits.Amount{Messages: 9}, Hard: limits.Amount{Messages: 10}}, ""},
		{"soft equal to hard", limits.Limits{Soft: limits.Amount{Messages: 10}, Hard: limits.Amount{Messages: 10}}, "soft limit of 10 messages must be below the hard limit of 10"},
		{"soft above hard", limits.Limits{Soft: limits.Amount{Bytes: 11}, Hard: limits.Amount{Bytes: 10}}, "soft limit of 11 bytes must be below the hard limit of 10"},
		{"negative", limits.Limits{Hard: limits.Amount{Bytes: -1}}, "hard limit of -1 bytes is outside 0"},
		{"too many messages", limits.Limits{Soft: limits.Amount{Messages: limits.MaxMessages + 1}}, "soft limit of 67108864 messages is outside 0..67108863"},
		{"low at soft", limits.Limits{Soft: limits.Amount{Messages: 4}, Low: limits.Amount{Messages: 4}}, "low mark of 4 messages must be below the soft limit of 4"},
		{"low without soft", limits.Limits{Low: limits.Amount{Messages: 4}}, "low mark of 4 messages must be below the soft limit of 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := c.l.Check()
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
		})
	}
}

func TestState_Names(t *testing.T) {
	require.Equal(t, "ready congested soft hard state 9", fmt.Sprint(limits.Ready, " ", limits.Congested, " ", limits.Soft, " ", limits.Hard, " ", limits.State(9)))
}

func TestAmount_String(t *testing.T) {
	require.Equal(t, "2 messages, 3 bytes", limits.Amount{Messages: 2, Bytes: 3}.String())
	require.Equal(t, "2 messages", limits.Amount{Messages: 2}.String())
	require.Equal(t, "3 bytes", limits.Amount{Bytes: 3}.String())
	require.Equal(t, "0 messages", limits.Amount{}.String())
}
