//go:build unix

package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestJudge_Wrong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	begins := &run{id: "r", began: now}
	ends := &run{id: "r", began: now, stopped: now}
	for _, test := range []struct {
		what  string
		c     *call
		runs  []*run
		wrong bool
	}{
		{"once, answered", &call{outcome: answered, text: "r"}, []*run{ends}, false},
		{"once, answered twice", &call{outcome: answered, text: "r"}, []*run{ends, begins}, true},
		{"answered before it has ended", &call{outcome: answered, text: "r"}, []*run{begins}, true},
		{"answered, and has not run", &call{outcome: answered, text: "r"}, nil, true},
		{"answered by another run", &call{outcome: answered, text: "s"}, []*run{ends}, true},
		{"may have run, and has not", &call{outcome: mayHaveRun}, nil, false},
		{"may have run, and has", &call{outcome: mayHaveRun}, []*run{begins}, false},
		{"may have run, and has twice", &call{outcome: mayHaveRun}, []*run{begins, ends}, true},
		{"did not run", &call{outcome: notRun}, nil, false},
		{"did not run, and has begun", &call{outcome: notRun}, []*run{begins}, true},
		{"not ended", &call{outcome: open}, nil, true},
		{"not promised", &call{outcome: odd, text: "something else"}, []*run{ends}, true},
		{"again, answered by one of two", &call{again: true, outcome: answered, text: "r"}, []*run{{id: "s"}, ends}, false},
		{"again, answered by none of two", &call{again: true, outcome: answered, text: "x"}, []*run{begins, ends}, true},
	} {
		require.Equal(t, test.wrong, test.c.wrong(test.runs) != "", test.what)
	}
}

func TestJudge_OneAnswer(t *testing.T) {
	t.Parallel()
	c := &call{outcome: answered, text: "r"}
	c.compare("r")
	require.Equal(t, answered, c.outcome)
	c.compare("s")
	require.Equal(t, odd, c.outcome)
}
