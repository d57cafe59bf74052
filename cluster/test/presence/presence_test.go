package presence_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/presence"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// life is the time without a sign of life after which a node is lost.
const life = 3 * time.Second

// site is a NATS server with the buckets of a cluster.
type site struct {
	t *testing.T
	presence.Env
}

func newSite(t *testing.T) *site {
	t.Helper()
	nc := natstest.Connect(t, natstest.StartServer(t, broker.Config{}))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	bucket := func(name string, ttl time.Duration) jetstream.KeyValue {
		b, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: name, TTL: ttl, Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
		return b
	}
	return &site{t, presence.Env{
		NATS: nc, JetStream: js, Nodes: bucket("nodes", 0), Alive: bucket("alive", life),
		Life: life, Beat: life / 3, Reconnected: new(wait.Notice), Logger: slog.New(slog.DiscardHandler),
		Reopen: func(context.Context) error { return errors.New("the buckets are there") },
	}}
}

// node is the entry of a node of orders.
func node(id, instance string) presence.Member {
	return presence.Member{Name: "orders", ID: id, Instance: instance, State: presence.Present, Identity: "orders"}
}

// joins announces a node, which gives signs of life until stop is called.
func (s *site) joins(m presence.Member) (a *presence.Announcement, kept <-chan error, stop func()) {
	s.t.Helper()
	a = presence.Announce(s.Env, m)
	require.NoError(s.t, a.Join(s.t.Context()))
	ctx, cancel := context.WithCancel(s.t.Context())
	over := make(chan error, 1)
	go func() { over <- a.Keep(ctx, nil) }() // ends with ctx
	s.t.Cleanup(cancel)
	return a, over, cancel
}

// changes returns the changes of orders.
func (s *site) changes() <-chan string {
	ctx, cancel := context.WithCancel(s.t.Context())
	views := presence.NewViews(ctx, s.Env)
	v, leave := views.Open("orders.*")
	told := make(chan string, 10)
	w := presence.NewWatcher(v)
	go func() { // ends with ctx
		for {
			changed := v.Next()
			w.Yield(func(c presence.Change, err error) bool {
				if err == nil {
					told <- string(c.Kind) + " " + c.Member.ID
				}
				return true
			})
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	s.t.Cleanup(func() { cancel(); leave(); views.Close() })
	return told
}

func TestPresence_Changes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newSite(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go presence.NewReaper(s.Env, "w").Run(ctx) // ends with ctx
		told := s.changes()
		a, _, stop := s.joins(node("a", "1"))
		require.Equal(t, "joined a", <-told)
		stop()
		a.Leave(t.Context())
		require.Equal(t, "left a", <-told)
		_, _, stop = s.joins(node("b", "1"))
		require.Equal(t, "joined b", <-told)
		stop() // without Leave
		require.Equal(t, "lost b", <-told, "the reaper has found it")
	})
}

func TestAnnouncement_NameTaken(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newSite(t)
		a, _, stop := s.joins(node("a", "1"))
		other := node("b", "2")
		other.Identity = "rogue"
		require.ErrorIs(t, presence.Announce(s.Env, other).Join(t.Context()), presence.ErrNameTaken)
		other.ID = "a"
		require.ErrorIs(t, presence.Announce(s.Env, other).Check(t.Context()), presence.ErrNameTaken)
		stop()
		a.Leave(t.Context())
		require.NoError(t, presence.Announce(s.Env, other).Join(t.Context()))
	})
}

func TestAnnouncement_Replaced(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newSite(t)
		_, kept, _ := s.joins(node("a", "1"))
		s.joins(node("a", "2"))
		require.ErrorIs(t, <-kept, presence.ErrReplaced)
	})
}

func TestReporter_OnlyAbsentNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := newSite(t)
		told := s.changes()
		_, _, stop := s.joins(node("a", "1"))
		require.Equal(t, "joined a", <-told)
		e, err := s.Nodes.Get(t.Context(), "orders.a")
		require.NoError(t, err)
		m, err := presence.Decode(e)
		require.NoError(t, err)
		there := func(context.Context, presence.Member) error { return errors.New("it is there") }
		presence.NewReporter(s.Env, there).Report(t.Context(), m)
		_, err = s.Nodes.Get(t.Context(), "orders.a")
		require.NoError(t, err)
		absent := func(context.Context, presence.Member) error { return nil }
		presence.NewReporter(s.Env, absent).Report(t.Context(), m)
		require.Equal(t, "lost a", <-told)
		require.Equal(t, "joined a", <-told, "it is alive, and back at its next sign")
		stop()
	})
}
