package asterisque

import (
	"bytes"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestReports_LastStates checks the order of reports, and that the last state is always reported.
func TestReports_LastStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := reports{log: slog.New(slog.NewTextHandler(&log, nil))}
		s, goOn := new(watched), make(chan struct{})
		var told []int
		tell := func(kind, i int) { r.add(s, report{kind: kind, n: 1, tell: func(int) { told = append(told, i) }}) }
		r.add(s, report{kind: noKind, n: 1, tell: func(int) { <-goOn }})
		synctest.Wait()
		for i := range mostReports {
			tell(keepLimit, i)
		}
		tell(noKind, -1) // finds no place, as all that follow
		r.add(s, report{kind: noKind, n: 10, tell: func(int) { told = append(told, -1) }})
		for i := range 3 {
			tell(keepLimit, mostReports+i)
			tell(keepLimit+1, 2*mostReports+i)
		}
		r.close(s, report{kind: keepEnded, n: 2, tell: func(i int) { told = append(told, -10-i) }})
		tell(keepLimit, -1)
		close(goOn)
		synctest.Wait()
		require.Equal(t, []int{-10, -11}, told[len(told)-2:], "all callbacks of the end, which is the last thing")
		told = told[:len(told)-2]
		require.Len(t, told, mostReports+2)
		for i := range mostReports {
			require.Equal(t, i, told[i])
		}
		require.Equal(t, []int{mostReports + 2, 2*mostReports + 2}, told[mostReports:], "the newest of each kind")
		require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("did not keep up")))
		require.Contains(t, log.String(), "lost=15", "one, ten, and two older ones of each kind")
		require.Empty(t, r.of, "nothing is kept")
	})
}

// TestReports_WholeEvents reports an event as a whole, even beyond mostReports.
func TestReports_WholeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := reports{log: slog.New(slog.NewTextHandler(&log, nil))}
		var told []int
		r.add(new(watched), report{kind: noKind, n: 2 * mostReports, tell: func(i int) {
			told = append(told, i)
			switch {
			case i == 5:
				panic("five")
			case i == 7:
				runtime.Goexit()
			}
		}})
		synctest.Wait()
		require.Len(t, told, 2*mostReports)
		require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("stack=")))
	})
}
