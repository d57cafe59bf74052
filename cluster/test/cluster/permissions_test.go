package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/bookingtest"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

func TestPermissions_Suffice(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := guarded(t)
		joined(t, as("keeper", config(b, "keeper", "k")))
		c := joined(t, as("gateway", config(b, "", "")))
		n := watching(t, c, "orders")
		direct := joined(t, as("orders", listening(config(b, "orders", "direct"))))
		n.told(t, "joined direct")
		p := callerOf(t, c, "orders")
		answering(t, p, "direct")
		require.Equal(t, []string{"mem"}, wires(c))
		require.NoError(t, direct.Close())
		n.told(t, "joined direct", "left direct")

		hidden := joined(t, as("orders", config(b, "orders", "hidden")))
		answering(t, p, "hidden")
		require.Contains(t, wires(c), "nats")
		vanish(hidden)
		n.told(t, "joined direct", "left direct", "joined hidden", "lost hidden")
	})
}

func TestPermissions_Keys(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := kept(t)
		first := joined(t, as("orders", config(b, "orders", "first")))
		second := joined(t, as("orders", config(b, "orders", "second")))
		claim, err := first.Claim(t.Context(), "orders.4711")
		require.NoError(t, err)
		require.Equal(t, "first", ask(t, second.Holder("orders.4711")))
		_, err = second.TakeOver(t.Context(), "orders.4711")
		require.NoError(t, err)
		select {
		case <-claim.Done(): // long before the next renewal
		case <-time.After(lifeTime / 4):
			t.Fatal("the first one is not notified")
		}

		gateway := joined(t, as("gateway", config(b, "", "")))
		require.Equal(t, "second", ask(t, gateway.Holder("orders.4711")))
		h, held, err := gateway.Lookup(t.Context(), "orders.4711")
		require.NoError(t, err)
		require.True(t, held)
		require.Equal(t, "second", h.Node)
		waits, cancel := context.WithTimeout(t.Context(), natstest.Timeout)
		defer cancel()
		require.NoError(t, second.Close())
		_, err = first.AwaitClaim(waits, "orders.4711")
		require.NoError(t, err)
	})
}

func TestPermissions_DurableCalls(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := &bookings{t: t, b: kept(t)}
		orders := func(c *cluster.Config) { *c = as("orders", *c) }
		f, release := bookingtest.Holds("at a")
		a, b := s.replica("a", f, orders), s.replica("b", bookingtest.Answers("at b"), orders)
		key := bookingtest.Key()
		first, second := s.begins(a, key, 1), s.begins(b, key, 1)
		b.awaitWatches(1)
		release()
		bookingtest.RequireText(t, "at a", first)
		bookingtest.RequireText(t, "at a", second)
		requireAllowed(t, b.Cluster)
	})
}

func TestPermissions_PostedCalls(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		s := &bookings{t: t, b: kept(t)}
		a := s.takes("a", bookingtest.Answers("booked"), func(c *cluster.Config) { *c = as("orders", *c) })
		c := s.customer(func(c *cluster.Config) { *c = as("gateway", *c) })
		requireResult(t, "booked", c, posts(t, c, 1))
		require.NoError(t, a.Close())
		r := posts(t, c, 2)
		require.NoError(t, c.Withdraw(t.Context(), r))
		require.Zero(t, waiting(t, c))
		requireAllowed(t, c)
		requireAllowed(t, a)
	})
}

func TestPermissions_ResumeAnywhere(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b, balance := kept(t), new(balancer)
		has := joined(t, as("orders", anywhere(config(b, "orders", "a"))), resuming...)
		there := joined(t, as("orders", anywhere(config(b, "orders", "b"))), resuming...)
		conn := balance.connect(t, has)
		first := conn.Session()
		require.Eventually(t, func() bool {
			s, err := jetStream(t, has).Stream(t.Context(), "KV_asterisque_main_sessions")
			return err == nil && s.CachedInfo().State.Msgs > 0
		}, bookingTime, perLook)
		balance.lead(there)
		require.Equal(t, "a", ask(t, conn))
		require.Same(t, first, conn.Session())
		require.NoError(t, has.Close())
		balance.lead(there)
		soonAnswers(t, conn, "b")
		requireAllowed(t, there)
	})
}

// requireAllowed expects that the server has rejected no operation that a node needs. Only the
// keeper may look for lost nodes.
func requireAllowed(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	if err := c.Conn().LastError(); err != nil {
		require.ErrorContains(t, err, `"$KV.asterisque_main_alive.reaper"`)
	}
}

func TestPermissions_Reaper(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := guarded(t)
		joined(t, as("keeper", config(b, "keeper", "k")))
		log := new(record)
		c := joined(t, as("orders", config(b, "orders", "a")), asterisque.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
		log.has(t, "this node is not allowed to look for lost ones")
		_, err := c.Claim(t.Context(), "stock.4711")
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		require.ErrorContains(t, err, `"$KV.asterisque_main_claims.stock.4711"`)
	})
}

func TestPermissions_OutsideNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := kept(t)
		c := joined(t, as("orders", config(b, "orders", "a")))
		ln, err := natswire.Listen(t.Context(), connected(t, b, "orders"), "orders", nil)
		require.NoError(t, err)
		go c.Node().Serve(t.Context(), ln) // ends with the node
		agent := asterisque.NewNode()
		defer agent.Close()
		w, err := natswire.Dial(t.Context(), connected(t, b, "agent"), "orders", nil)
		require.NoError(t, err)
		s, err := agent.Attach(t.Context(), w)
		require.NoError(t, err)
		require.Equal(t, "a", ask(t, s))
		require.False(t, wire.IsPrivate(w))
	})
}

func TestPermissions_JoinError(t *testing.T) {
	t.Parallel()
	others := func(cfg cluster.Config) cluster.Config {
		cfg.Options = append(cfg.Options, nats.CustomInboxPrefix("_INBOX.gateway"))
		return cfg
	}
	offers := func(cfg cluster.Config) cluster.Config { return offeringAt("stock.price", cfg) }
	same := func(cfg cluster.Config) cluster.Config { return cfg }
	for name, test := range map[string]struct {
		server     func(t *testing.T) *broker.Broker
		user, name string
		change     func(cluster.Config) cluster.Config
		subject    string
	}{
		"another name":                          {kept, "orders", "stock", same, `"asterisque.wire.main.stock.a"`},
		"a name, of one that only calls":        {kept, "gateway", "orders", same, `"asterisque.wire.main.orders.a"`},
		"a node, of one that joins none":        {kept, "agent", "", same, `"$JS.API.STREAM.INFO.KV_asterisque_main_nodes"`},
		"inboxes of other users":                {kept, "orders", "orders", others, `"_INBOX.gateway.`},
		"before the buckets are there":          {guarded, "orders", "orders", same, `"$JS.API.STREAM.CREATE.KV_asterisque_main_nodes"`},
		"endpoints at a subject of other users": {kept, "orders", "orders", offers, `"stock.price"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				c, err := cluster.Join(t.Context(), test.change(as(test.user, config(test.server(t), test.name, "a"))))
				require.Nil(t, c)
				require.ErrorIs(t, err, nats.ErrPermissionViolation)
				require.ErrorContains(t, err, test.subject)
			})
		})
	}
}

// offeringAt makes a node offer a function at a subject.
func offeringAt(subject string, cfg cluster.Config) cluster.Config {
	cfg.Service = asterisque.NewService()
	ownID.Handle(cfg.Service, func(context.Context, struct{}) (string, error) { return "", nil })
	cfg.Endpoints = []cluster.Endpoint{{Function: ownID.Number(), Subject: subject}}
	return cfg
}

func TestPermissions_WatchError(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		c := joined(t, as("gateway", config(kept(t), "", "")))
		_, err := c.Members(t.Context(), "stock")
		require.ErrorIs(t, err, nats.ErrPermissionViolation)
		require.ErrorContains(t, err, ".$KV.asterisque_main_nodes.stock.*")
	})
}

// record keeps the log.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *record) has(t *testing.T, text string) {
	t.Helper()
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return bytes.Contains(r.text.Bytes(), []byte(text))
	}, natstest.Timeout, 10*time.Millisecond)
}

// A node without the permission to report lost nodes tries it once.
func TestPermissions_LostNodes(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := kept(t)
		var denied atomic.Int64
		cfg := as("gateway", config(b, "", ""))
		cfg.Options = append(cfg.Options, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				denied.Add(1)
			}
		}))
		c := joined(t, cfg)
		p := callerOf(t, c, "orders")
		for range 2 {
			a := joined(t, as("orders", config(b, "orders", "a")))
			ask(t, p)
			vanish(a)
			_, err := ownID.Call(t.Context(), p, struct{}{}, asterisque.WithTTL(2*time.Second))
			require.Error(t, err)
			require.Eventually(t, func() bool { return denied.Load() > 0 }, natstest.Timeout, 10*time.Millisecond)
			fakeclock.Sleep(2 * lifeTime) // the reaper has found it
		}
		require.EqualValues(t, 1, denied.Load())
	})
}

// entryOf returns the entry of a node.
func entryOf(t *testing.T, m cluster.Member) []byte {
	t.Helper()
	b, err := json.Marshal(m)
	require.NoError(t, err)
	return b
}

// A client that may send requests to JetStream chooses the subject of the reply, and the server
// does not check whether the client may publish there. The page warns of this.
func TestPermissions_NoAttackers(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := kept(t)
		orders := connected(t, b, "orders")
		read := "$JS.API.DIRECT.GET.KV_asterisque_main_nodes.$KV.asterisque_main_nodes.orders.x"
		m := cluster.Member{Name: "stock", ID: "evil", State: cluster.Present}
		js, err := jetstream.New(connected(t, b, "keeper"))
		require.NoError(t, err)
		nodes, err := js.KeyValue(t.Context(), "asterisque_main_nodes")
		require.NoError(t, err)
		require.NoError(t, orders.Publish("$KV.asterisque_main_nodes.orders.x", entryOf(t, m)))
		require.Eventually(t, func() bool {
			require.NoError(t, orders.PublishRequest(read, "$KV.asterisque_main_nodes.stock.evil", nil))
			e, err := nodes.Get(t.Context(), "stock.evil")
			return err == nil && string(e.Value()) == string(entryOf(t, m))
		}, natstest.Timeout, 10*time.Millisecond, "he has written the entry of another name")

		require.NoError(t, orders.Publish("$KV.asterisque_main_nodes.orders.x", nil))
		require.Eventually(t, func() bool {
			require.NoError(t, orders.PublishRequest(read, "$JS.API.STREAM.DELETE.KV_asterisque_main_claims", nil))
			_, err := js.KeyValue(t.Context(), "asterisque_main_claims")
			return errors.Is(err, jetstream.ErrBucketNotFound)
		}, natstest.Timeout, 10*time.Millisecond, "he has deleted a bucket")
	})
}
