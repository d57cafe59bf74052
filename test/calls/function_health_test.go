package calls

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

const (
	unknown    = asterisque.HealthUnknown
	serving    = asterisque.HealthServing
	notServing = asterisque.HealthNotServing
)

// health is the states of components by name.
type health = map[string]asterisque.HealthState

// healthy returns a node that offers echo, block and the health service for h.
func healthy(h *asterisque.Health, opts ...asterisque.StandardOption) *asterisque.Service {
	svc, _, _ := testkit.BlockService()
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	svc.Health(h, opts...)
	return svc
}

func healthWith(t *testing.T, s health) *asterisque.Health {
	h := asterisque.NewHealth()
	for part, state := range s {
		require.NoError(t, h.Set(part, state))
	}
	return h
}

type watching = asterisque.StreamCall[struct{}, health, struct{}]

func watchHealth(t *testing.T, s asterisque.Caller, parts ...string) *watching {
	t.Helper()
	w, err := asterisque.WatchHealth.Open(testkit.Background, s, asterisque.HealthQuery{Parts: parts})
	require.NoError(t, err)
	return w
}

func wantNews(t *testing.T, w *watching, want health) {
	t.Helper()
	got, err := w.Recv(testkit.Background)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// wantNoNews requires that no update arrives within an hour.
func wantNoNews(t *testing.T, w *watching) {
	t.Helper()
	ctx, cancel := context.WithTimeout(testkit.Background, time.Hour)
	defer cancel()
	_, err := w.Recv(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// Health is offered only if the service chose to.
func TestHealth_Chosen(t *testing.T) {
	dialled, _ := testkit.Connect(t, testkit.EchoService())
	_, err := asterisque.CheckHealth.Call(testkit.Background, dialled, asterisque.HealthQuery{})
	require.ErrorIs(t, err, asterisque.ErrNoFunction)
	_, err = watchHealth(t, dialled).Recv(testkit.Background)
	require.ErrorIs(t, err, asterisque.ErrNoFunction)
	require.True(t, asterisque.Repeatable(err))
}

// Health is checked for parts or for all.
func TestHealth_PartsOrAll(t *testing.T) {
	for _, c := range []struct {
		held  health
		parts []string
		want  health
	}{
		{nil, nil, health{"": serving}},
		{nil, []string{}, health{"": serving}},
		{nil, []string{""}, health{"": serving}},
		{nil, []string{"db"}, health{"db": unknown}},
		{health{"db": serving, "disk": notServing}, nil, health{"": serving, "db": serving, "disk": notServing}},
		{health{"db": serving, "disk": notServing}, []string{"disk", "disk", "net"}, health{"disk": notServing, "net": unknown}},
		{health{"": notServing}, nil, health{"": notServing}},
		{health{"": unknown}, nil, health{"": unknown}},
	} {
		dialled, _ := testkit.Connect(t, healthy(healthWith(t, c.held)))
		got, err := asterisque.CheckHealth.Call(testkit.Background, dialled, asterisque.HealthQuery{Parts: c.parts})
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c)
		wantNews(t, watchHealth(t, dialled, c.parts...), c.want)
	}
}

// A watch sends all states at once, and then changes.
func TestHealth_WatchChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := healthWith(t, health{"db": serving})
		_, _, dialled, accepted := testkit.TwoNodes(t, healthy(h))
		all, one := watchHealth(t, dialled), watchHealth(t, dialled, "disk")
		wantNews(t, all, health{"": serving, "db": serving})
		wantNews(t, one, health{"disk": unknown})
		wantNoNews(t, all)

		require.NoError(t, h.Set("db", notServing))
		wantNews(t, all, health{"db": notServing})
		require.NoError(t, h.Set("db", notServing))
		wantNoNews(t, all)
		require.NoError(t, h.Set("disk", serving))
		wantNews(t, all, health{"disk": serving})
		wantNews(t, one, health{"disk": serving})
		require.NoError(t, h.Set("disk", unknown))
		wantNews(t, all, health{"disk": unknown})
		wantNews(t, one, health{"disk": unknown})
		wantNoNews(t, one)
		require.NoError(t, h.Set("", notServing))
		wantNews(t, all, health{"": notServing})

		all.Abort(nil)
		one.Abort(nil)
		synctest.Wait()
		require.Zero(t, accepted.Stats().Running)
	})
}

// A slow watcher gets the latest states.
func TestHealth_SlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := asterisque.NewHealth()
		_, _, dialled, accepted := testkit.TwoNodes(t, healthy(h))
		w := watchHealth(t, dialled)
		name := strings.Repeat("x", 128)
		const changes = 10_000
		for i := range changes {
			require.NoError(t, h.Set(name, serving+asterisque.HealthState(i%2)))
			synctest.Wait()
		}
		require.NoError(t, h.Set("last", serving))
		synctest.Wait()
		require.Less(t, accepted.Stats().Outbound.Bytes, 64<<10)
		require.Less(t, dialled.Stats().Inbound.Bytes, 64<<10)
		values, now := 0, health{}
		for now["last"] != serving {
			news, err := w.Recv(testkit.Background)
			require.NoError(t, err)
			values++
			for part, state := range news {
				now[part] = state
			}
		}
		require.Equal(t, health{"": serving, name: notServing, "last": serving}, now)
		require.Less(t, values, 1000)
	})
}

// Watchers get a drain at once, and no watcher delays it.
func TestHealth_Drain(t *testing.T) {
	for name, shutDown := range map[string]func(*asterisque.Session, *asterisque.Node) error{
		"of the session": func(s *asterisque.Session, _ *asterisque.Node) error { return s.Shutdown(testkit.Background) },
		"of the node":    func(_ *asterisque.Session, n *asterisque.Node) error { return n.Shutdown(testkit.Background) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := healthWith(t, health{"db": serving})
				_, there, dialled, accepted := testkit.TwoNodes(t, healthy(h))
				all, whole, part := watchHealth(t, dialled), watchHealth(t, dialled, ""), watchHealth(t, dialled, "db")
				wantNews(t, all, health{"": serving, "db": serving})
				wantNews(t, whole, health{"": serving})
				wantNews(t, part, health{"db": serving})
				synctest.Wait()
				begin := time.Now()
				require.NoError(t, shutDown(accepted, there))
				require.Less(t, time.Since(begin), 2*time.Second)
				for _, w := range []*watching{all, whole} {
					wantNews(t, w, health{"": notServing})
				}
				for _, w := range []*watching{all, whole, part} {
					_, err := w.Recv(testkit.Background)
					require.Equal(t, io.EOF, err)
					_, err = w.Result(testkit.Background)
					require.NoError(t, err, "it ends well")
				}
				require.Equal(t, health{"": serving, "db": serving}, h.States(), "of other nodes")
			})
		})
	}
}

// A watch ends when its caller shuts down.
func TestHealth_WatchShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, _, dialled, _ := testkit.TwoNodes(t, healthy(asterisque.NewHealth()))
		w := watchHealth(t, dialled)
		wantNews(t, w, health{"": serving})
		begin := time.Now()
		require.NoError(t, here.Shutdown(testkit.Background))
		require.Less(t, time.Since(begin), 2*time.Second)
		_, err := w.Recv(testkit.Background)
		require.Equal(t, io.EOF, err, "nothing has changed there")
	})
}

// A watcher that does not read delays no drain.
func TestHealth_WatcherNotReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := asterisque.NewHealth()
		_, _, dialled, accepted := testkit.TwoNodes(t, healthy(h))
		w := watchHealth(t, dialled)
		for i := range 5000 { // until its window is used up
			require.NoError(t, h.Set(strings.Repeat("x", 128), serving+asterisque.HealthState(i%2)))
			synctest.Wait()
		}
		begin := time.Now()
		require.NoError(t, accepted.Shutdown(testkit.Background))
		require.Less(t, time.Since(begin), 2*time.Second)
		_, err := w.Result(testkit.Background)
		require.NoError(t, err)
	})
}

// With WithGrantOnly, health is only for peers with a grant.
func TestHealth_GrantOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := healthy(asterisque.NewHealth(), asterisque.WithGrantOnly())
		svc.Describe(asterisque.WithGrantOnly())
		there := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithAccess(asterisque.Access{
			Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
				return &asterisque.Grant{Health: strings.Contains(p.ID, "health"), Describe: strings.Contains(p.ID, "describe")}, nil
			},
		}))
		defer there.Close()
		for _, id := range []string{"", "health", "describe", "health describe"} {
			here := asterisque.NewNode(asterisque.WithID(id))
			dialled, _ := asterisquetest.ConnectNodes(t, here, there)
			_, check := asterisque.CheckHealth.Call(testkit.Background, dialled, asterisque.HealthQuery{})
			_, watch := watchHealth(t, dialled).Recv(testkit.Background)
			_, describe := asterisque.Describe.Call(testkit.Background, dialled, asterisque.DescribeQuery{})
			for _, c := range []struct {
				err  error
				name string
			}{{check, "health"}, {watch, "health"}, {describe, "describe"}} {
				if strings.Contains(id, c.name) {
					require.NoError(t, c.err, "%q: %s", id, c.name)
				} else {
					require.ErrorIs(t, c.err, asterisque.ErrNoFunction, "%q: %s", id, c.name)
				}
			}
			here.Close()
		}
	})
}

// Health has names in JSON, and numbers for states.
func TestHealth_JSON(t *testing.T) {
	dialled, _ := testkit.Connect(t, healthy(healthWith(t, health{"db": notServing})), asterisque.WithCodecs(codec.JSON))
	answer, err := dialled.Call(testkit.Background, asterisque.CheckHealth.Number(), []byte(`{"parts": ["db", "net"], "more": 1}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"db": 2, "net": 0}`, string(answer))
	wantNews(t, watchHealth(t, dialled), health{"": serving, "db": notServing})
}

// The number of parts of a Health is bounded.
func TestHealth_Bounded(t *testing.T) {
	h := asterisque.NewHealth()
	for name, c := range map[string]struct {
		part  string
		state asterisque.HealthState
		want  error
	}{
		"the longest name":  {strings.Repeat("x", 128), serving, nil},
		"one that is not":   {strings.Repeat("x", 129), serving, asterisque.ErrBadParams},
		"no text":           {"\xff", serving, asterisque.ErrBadParams},
		"a state":           {"a", notServing, nil},
		"none":              {"a", 3, asterisque.ErrBadParams},
		"nothing to forget": {"b", unknown, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := h.States()
			err := h.Set(c.part, c.state)
			if c.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, c.want)
			require.Equal(t, before, h.States())
		})
	}
	h = asterisque.NewHealth()
	for i := range 1023 {
		require.NoError(t, h.Set(fmt.Sprint(i), serving))
	}
	require.ErrorIs(t, h.Set("one too many", serving), asterisque.ErrTooLarge)
	require.NoError(t, h.Set("0", notServing))
	require.NoError(t, h.Set("0", unknown))
	require.NoError(t, h.Set("no more", serving))
	h.States()["mine"] = serving
	require.NotContains(t, h.States(), "mine", "the map is the caller's")
}

// An invalid Health is refused when it is offered.
func TestHealth_Invalid(t *testing.T) {
	defer func() {
		require.Regexp(t, `Service.Health of nil at .*function_health_test.go:\d+: make a Health with NewHealth`, recover())
	}()
	asterisque.NewService().Health(nil)
}

// Health is offered once.
func TestHealth_OfferedOnce(t *testing.T) {
	svc := healthy(asterisque.NewHealth())
	require.Panics(t, func() { svc.Health(asterisque.NewHealth()) }, "once is enough")
}

func TestHealthState_Names(t *testing.T) {
	require.Equal(t, "unknown, serving, not serving, state 7", fmt.Sprintf("%v, %v, %v, %v", unknown, serving, notServing, asterisque.HealthState(7)))
}

// Health is set and watched concurrently.
func TestHealth_Concurrent(t *testing.T) {
	h := asterisque.NewHealth()
	dialled, _ := testkit.Connect(t, healthy(h))
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 100 {
				h.Set(fmt.Sprint(i), serving+asterisque.HealthState(n%2))
			}
			h.Set(fmt.Sprint(i), notServing)
		})
		all.Go(func() {
			w, err := asterisque.WatchHealth.Open(testkit.Background, dialled, asterisque.HealthQuery{Parts: []string{fmt.Sprint(i)}})
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Abort(nil)
			for last := unknown; last != notServing; {
				news, err := w.Recv(testkit.Background)
				if err != nil {
					t.Error(err)
					return
				}
				last = news[fmt.Sprint(i)]
			}
		})
	}
	all.Wait()
}

// The specification has the numbers of health.
func TestHealth_NumbersOfSpec(t *testing.T) {
	text, err := os.ReadFile("../../spec/protocol.md")
	require.NoError(t, err)
	_, section, _ := strings.Cut(string(text), "\n## 15. Standard functions\n")
	require.Contains(t, section, fmt.Sprintf("\n| %d | %s | ", asterisque.CheckHealth.Number(), asterisque.CheckHealth.Name()))
	require.Contains(t, section, fmt.Sprintf("\n| %d | %s | ", asterisque.WatchHealth.Number(), asterisque.WatchHealth.Name()))
	require.Contains(t, section, "\n| 1 | parts | ", "see HealthQuery")
	for _, s := range []asterisque.HealthState{unknown, serving, notServing} {
		require.Contains(t, section, fmt.Sprintf("\n| %d | %v: ", s, s))
	}
}
