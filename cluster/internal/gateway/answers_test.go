package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// newAnswers returns the answers of tools for a node without functions.
func newAnswers() *toolsAnswers {
	a := new(toolsAnswers)
	a.begin(func() int64 { return 1 << 20 }, toolsInfo{name: "orders", id: "a"}, nil)
	return a
}

func TestToolsAnswer_Reused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		made := 0
		a.kept["INFO"].value = func([]shownEndpoint, int) any { made++; return made }
		now := time.Now()
		require.Equal(t, "1", string(a.of("INFO", now)))
		require.Equal(t, "1", string(a.of("INFO", now.Add(answerAge-1))))
		require.Equal(t, "2", string(a.of("INFO", now.Add(time.Hour))), "it was too old")
	})
}

func TestToolsAnswer_SlowToMake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		made, took := 0, answerAge
		a.kept["STATS"].value = func([]shownEndpoint, int) any {
			fakeclock.Sleep(took)
			made++
			return made
		}
		now := time.Now()
		a.of("STATS", now)
		require.Equal(t, "1", string(a.of("STATS", now.Add(answerShare*took-1))))
		require.Equal(t, "2", string(a.of("STATS", now.Add(answerShare*took))))
	})
}

func TestToolsAnswer_UnknownVerb(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		for _, verb := range []string{"", "ping", "SCHEMA"} {
			require.Nil(t, a.of(verb, time.Now()), verb)
		}
	})
}

func TestToolsAnswer_Limit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := newAnswers()
		now := time.Now()
		answered := func() (n int) {
			for range 10_000 {
				if a.of("PING", now) != nil {
					n++
				}
			}
			return n
		}
		require.InDelta(t, 1024, answered(), 1, "at once")
		require.Zero(t, answered())
		now = now.Add(time.Second / 4)
		require.InDelta(t, 256, answered(), 1)
		now = now.Add(time.Hour)
		require.InDelta(t, 1024, answered(), 1, "an unused hour does not add up")
	})
}

func TestAllowance_ManyRequests(t *testing.T) {
	t.Parallel()
	a, now := new(answerRate), time.Now()
	sent := 0
	for end := now.Add(time.Second); now.Before(end); now = now.Add(time.Microsecond) {
		if a.any(now) {
			a.spend(now, 1)
			sent++
		}
	}
	require.InDelta(t, 2*1024, sent, 1)
}

func TestAllowance_LargeMessage(t *testing.T) {
	t.Parallel()
	a, now := new(answerRate), time.Now()
	a.spend(now, 10<<20)
	require.False(t, a.any(now.Add(9*time.Second)))
	require.True(t, a.any(now.Add(9*time.Second+1)))
}

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
