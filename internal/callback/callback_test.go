package callback

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/stretchr/testify/require"
)

// session is a source of reports.
type session struct{ over bool }

func (s *session) LogAttrs() []any { return []any{"session", 1} }
func (s *session) Closed() *bool   { return &s.over }

// TestReports_LastStates checks the order of reports, and that the last state is always reported.
func TestReports_LastStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := Reports{Log: slog.New(slog.NewTextHandler(&log, nil))}
		s, goOn := new(session), make(chan struct{})
		var told []int
		tell := func(kind Kind, i int) {
			r.Add(s, Report{Kind: kind, N: 1, Call: func(int) { told = append(told, i) }})
		}
		r.Add(s, Report{Kind: Event, N: 1, Call: func(int) { <-goOn }})
		synctest.Wait()
		for i := range mostReports {
			tell(InLimits, i)
		}
		tell(Event, -1) // finds no place, as all that follow
		r.Add(s, Report{Kind: Event, N: 10, Call: func(int) { told = append(told, -1) }})
		for i := range 3 {
			tell(InLimits, mostReports+i)
			tell(OutLimits, 2*mostReports+i)
		}
		r.Close(s, Report{Kind: Ended, N: 2, Call: func(i int) { told = append(told, -10-i) }})
		tell(InLimits, -1)
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
		require.Empty(t, r.pending, "nothing is kept")
	})
}

// TestReports_WholeEvents reports an event as a whole, even beyond mostReports.
func TestReports_WholeEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := Reports{Log: slog.New(slog.NewTextHandler(&log, nil))}
		var told []int
		r.Add(new(session), Report{Kind: Event, N: 2 * mostReports, Call: func(i int) {
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

// TestAsk_Outcomes compares the results of callbacks that return, fail, panic or end their
// goroutine.
func TestAsk_Outcomes(t *testing.T) {
	refused := errors.New("refused")
	for _, c := range []struct {
		name string
		f    func() (int, error)
		want int
		err  error
	}{
		{"returns", func() (int, error) { return 7, nil }, 7, nil},
		{"fails", func() (int, error) { return 0, refused }, 0, refused},
		{"panics", func() (int, error) { panic("oops") }, 0, codec.ErrUnavailable},
		{"ends its goroutine", func() (int, error) { runtime.Goexit(); return 1, nil }, 0, codec.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := NewQuery(slog.New(slog.DiscardHandler), "accept", "Option", 1)
			for range 2 { // each call has left its place
				got, err := Ask(t.Context(), &q, c.f, nil)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.want, got)
			}
		})
	}
}

// TestAsk_Late returns at the end of the context, and passes on the value that comes later.
func TestAsk_Late(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuery(slog.New(slog.DiscardHandler), "accept", "Option", 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		goOn, late := make(chan struct{}), make(chan int, 1)
		_, err := Ask(ctx, &q, func() (int, error) { <-goOn; return 7, nil }, func(v int) { late <- v })
		require.ErrorIs(t, err, codec.ErrExpired)
		require.ErrorContains(t, err, "accept has not returned in time")
		close(goOn)
		require.Equal(t, 7, <-late)
	})
}

// TestAsk_Bound waits for a place for seven eighths of the time of the context.
func TestAsk_Bound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQuery(slog.New(slog.DiscardHandler), "accept", "Option", 1)
		goOn := make(chan struct{})
		go func() { _, _ = Ask(t.Context(), &q, func() (int, error) { <-goOn; return 0, nil }, nil) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := Ask(ctx, &q, func() (int, error) { return 0, nil }, nil)
		require.ErrorIs(t, err, codec.ErrOverloaded)
		require.ErrorContains(t, err, "see Option")
		require.Equal(t, 7*time.Second, time.Since(begin))
		close(goOn)
		synctest.Wait()
		_, err = Ask(t.Context(), &q, func() (int, error) { return 0, nil }, nil)
		require.NoError(t, err)
	})
}
