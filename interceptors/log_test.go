package interceptors_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/interceptors"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// lines is a log that returns its lines without their times.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.text.Reset()
	return strings.FieldsFunc(l.text.String(), func(r rune) bool { return r == '\n' })
}

func (l *lines) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

// levels counts the lines of each level.
func levels(all []string) map[string]int {
	n := map[string]int{}
	for _, line := range all {
		n[strings.TrimPrefix(strings.Fields(line)[0], "level=")]++
	}
	return n
}

func TestLog_BothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var here, there lines
		granted := asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
			return &asterisque.Grant{Subject: "alice"}, nil
		}}
		slow := func(ctx context.Context, s string) (string, error) {
			fakeclock.Sleep(time.Second)
			if s == "bad" {
				return "", &asterisque.Abort{Code: 1042, Message: "sold out"}
			}
			return s, nil
		}
		s := connectFrom(t, node(t, made(interceptors.Log(here.logger(slog.LevelInfo), 1))),
			node(t, served(interceptors.Log(there.logger(slog.LevelInfo), 1)), serving(slow), asterisque.WithAccess(granted)),
			&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 7})
		for _, c := range []struct {
			make func(context.Context, asterisque.Caller, string) (string, error)
			with string
			here string
			rest string
		}{
			{call, "x", "level=INFO msg=call function=10 name=echo side=made address=pipe took=1s outcome=ok", ""},
			{call, "bad", "level=WARN msg=call function=10 name=echo side=made address=pipe took=1s outcome=\"code 1042\"", "sold out"},
			{stream, "x", "level=INFO msg=call function=12 name=chat side=made address=pipe took=1s outcome=ok", ""},
			{stream, "bad", "level=WARN msg=call function=12 name=chat side=made address=pipe took=1s outcome=\"code 1042\"", "sold out"},
		} {
			c.make(background, s, c.with)
			synctest.Wait()
			said := here.take()
			require.Len(t, said, 1)
			require.Contains(t, said[0], c.here)
			require.Equal(t, c.rest != "", strings.Contains(said[0], "sold out"))
			said = there.take()
			require.Len(t, said, 1)
			require.Contains(t, said[0], strings.NewReplacer("made", "served subject=alice", "=pipe", "=192.0.2.1:7").Replace(c.here))
		}
	})
}

func TestLog_Stream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var here lines
		s := connect(t, node(t, made(interceptors.Log(here.logger(slog.LevelDebug), 0))), node(t, serving(waits)))
		p, err := chat.Open(background, s, "x")
		require.NoError(t, err)
		fakeclock.Sleep(time.Minute)
		synctest.Wait()
		require.Empty(t, here.take(), "it runs")
		p.Abort(asterisque.ErrUnauthorized)
		synctest.Wait()
		said := here.take()
		require.Len(t, said, 1, "although no caller has asked for its result")
		require.Contains(t, said[0], "took=1m0s outcome=unauthorized")
	})
}

func TestLog_Every(t *testing.T) {
	for every, want := range map[int]map[string]int{0: {"DEBUG": 10}, 1: {"INFO": 10}, 3: {"INFO": 4, "DEBUG": 6}, 10: {"INFO": 1, "DEBUG": 9}} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var here lines
				s := connect(t, node(t, made(interceptors.Log(here.logger(slog.LevelDebug), every))), node(t, serving(says)))
				for range 10 {
					_, err := call(background, s, "x")
					require.NoError(t, err)
				}
				require.Equal(t, want, levels(here.take()))
			})
		})
	}
}

func TestAttackLog_ManyFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var there lines
		fails := func(context.Context, string) (string, error) { return "", errors.New("no") }
		s := connect(t, node(t), node(t, serving(fails), served(interceptors.Log(there.logger(slog.LevelInfo), 1))))
		fail := func(times int) (said []string) {
			for range times {
				_, err := call(background, s, "x")
				require.Error(t, err)
			}
			synctest.Wait()
			return there.take()
		}
		require.Len(t, fail(1000), 10)
		fakeclock.Sleep(time.Second)
		said := fail(11)
		require.Len(t, said, 10)
		require.Contains(t, said[0], "more=990")
		require.NotContains(t, said[1], "more=", "that was said")
	})
}

func TestLog_LongError(t *testing.T) {
	var said lines
	long := errors.New("x" + strings.Repeat("é", 1<<10)) // would be cut within a character
	fails := func(context.Context, string) (string, error) { return "", long }
	there := node(t, serving(fails), served(interceptors.Log(said.logger(slog.LevelInfo), 0)))
	s := connect(t, node(t), there)
	_, err := call(background, s, "x")
	require.Error(t, err)
	require.NoError(t, there.Shutdown(background))
	line := said.take()
	require.Len(t, line, 1)
	require.Equal(t, 511, strings.Count(line[0], "é"))
	require.NotContains(t, line[0], "\ufffd")
}

func TestLog_HandlerPanics(t *testing.T) {
	for kind, make := range kinds {
		t.Run(kind, func(t *testing.T) {
			log := interceptors.Log(slog.New(panics{}), 1)
			s := connect(t, node(t, made(log)), node(t, serving(says), served(log)))
			got, err := make(background, s, "x")
			require.NoError(t, err)
			require.Equal(t, "x", got)
		})
	}
}

// panics is a log handler that panics.
type panics struct{}

func (panics) Enabled(context.Context, slog.Level) bool  { return true }
func (panics) Handle(context.Context, slog.Record) error { panic("full") }
func (p panics) WithAttrs([]slog.Attr) slog.Handler      { return p }
func (p panics) WithGroup(string) slog.Handler           { return p }

func TestLog_GoroutineEnds(t *testing.T) {
	for _, side := range []string{"made", "served"} {
		for kind, make := range kinds {
			t.Run(side+" "+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var l lines
					log := interceptors.Log(l.logger(slog.LevelInfo), 0)
					exits := func(context.Context, *asterisque.Call, asterisque.Next) error { runtime.Goexit(); return nil }
					here, there := node(t), node(t, serving(says), served(log, exits))
					if side == "made" {
						here, there = node(t, made(log, exits)), node(t, serving(says))
					}
					s := connect(t, here, there)
					go make(background, s, "x")
					synctest.Wait()
					said := l.take()
					require.Len(t, said, 1)
					require.Contains(t, said[0], "outcome=panicked")
				})
			})
		}
	}
}

func TestLog_BadArguments(t *testing.T) {
	require.PanicsWithValue(t, "interceptors: Log: the logger is nil: give it slog.Default(), or leave the interceptor out", func() { interceptors.Log(nil, 1) })
	require.Panics(t, func() { interceptors.Log(slog.Default(), -1) })
}
