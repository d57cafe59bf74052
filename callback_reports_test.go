package asterisque

import (
	"bytes"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestReportsAreToldInOrderAndTheLastStateInAnyCase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := reports{log: slog.New(slog.NewTextHandler(&log, nil))}
		s, goOn := new(Session), make(chan struct{})
		var told []int
		tell := func(kind, i int) { r.add(s, "test", kind, func() { told = append(told, i) }) }
		r.add(s, "test", noKind, func() { <-goOn })
		synctest.Wait()
		for i := range mostReports {
			tell(keepLast, i)
		}
		tell(noKind, -1) // finds no place, as all that follow
		r.addAll(s, "test", 10, func(int) { told = append(told, -1) })
		for i := range 3 {
			tell(keepLast, mostReports+i)
			tell(keepLast+1, 2*mostReports+i)
		}
		close(goOn)
		synctest.Wait()
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

func TestWhatOneEventCausesIsReportedAsAWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := reports{log: slog.New(slog.NewTextHandler(&log, nil))}
		var told []int
		r.addAll(new(Session), "test", 2*mostReports, func(i int) {
			told = append(told, i)
			switch {
			case i == 5:
				panic("five")
			case i == 7:
				runtime.Goexit()
			}
		})
		synctest.Wait()
		require.Len(t, told, 2*mostReports)
		require.Equal(t, 2, bytes.Count(log.Bytes(), []byte("stack=")))
	})
}
