package cluster_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestJoin_CalledByName(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, listening(config(b, "orders", "a")))
		joined(t, config(b, "orders", "b"))
		joined(t, config(b, "stock", "c"))
		p := callerOf(t, joined(t, config(b, "", "")), "orders")
		answering(t, p, "a", "b")
	})
}

func TestDial_AddressFirst(t *testing.T) {
	t.Parallel()
	b := natstest.StartServer(t, broker.Config{})
	joined(t, listening(config(b, "direct", "a")))
	joined(t, config(b, "hidden", "b"))
	unreachable := config(b, "unreachable", "c")
	unreachable.Addresses = []string{"tcp://127.0.0.1:1", "unix:/no/such/socket"}
	joined(t, unreachable)
	for name, want := range map[string]string{"direct": "tcp", "hidden": "nats", "unreachable": "nats"} {
		c := joined(t, config(b, "", ""))
		ask(t, callerOf(t, c, name))
		require.Equal(t, []string{want}, wires(c), name)
	}
}

func TestJoin_CalledByID(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, config(b, "orders", "a"))
		joined(t, config(b, "orders", "b"))
		c := joined(t, config(b, "", ""))
		for _, id := range []string{"a", "b"} {
			p, err := c.At(t.Context(), id)
			require.NoError(t, err)
			defer p.Close()
			require.Equal(t, id, ask(t, p))
		}
		_, err := c.At(t.Context(), "no id")
		require.ErrorContains(t, err, `no node can have the id "no id"`)
		_, err = c.Caller(t.Context(), "orders.*")
		require.ErrorContains(t, err, `no node can have the name "orders.*"`)
	})
}

func TestCaller_WaitsForNode(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		p := callerOf(t, joined(t, config(b, "", "")), "orders")
		_, err := ownID.Call(t.Context(), p, struct{}{}, asterisque.WithTTL(100*time.Millisecond))
		require.ErrorIs(t, err, asterisque.ErrExpired)
		var outage *asterisque.NotConnectedError
		require.ErrorAs(t, err, &outage)
		require.ErrorIs(t, outage.Why, cluster.ErrNoMember)
		joined(t, config(b, "orders", "a"))
		require.Equal(t, "a", ask(t, p))
	})
}

func TestJoin_CallBack(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		// a node that only dials out is called through NATS, and can call back
		b := natstest.StartServer(t, broker.Config{})
		svc := asterisque.NewService()
		ownID.Handle(svc, func(ctx context.Context, _ struct{}) (string, error) {
			id, err := ownID.Call(ctx, asterisque.SessionOf(ctx), struct{}{})
			return "called by " + id, err
		})
		joined(t, config(b, "server", "s"), asterisque.WithService(svc))
		require.Equal(t, "called by agent", ask(t, callerOf(t, joined(t, config(b, "agents", "agent")), "server")))
	})
}

func TestCaller_Near(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		in := func(region string, cfg cluster.Config) cluster.Config { cfg.Region = region; return cfg }
		near := joined(t, in("eu", config(b, "orders", "near")))
		joined(t, in("us", config(b, "orders", "far")))
		c := joined(t, in("eu", config(b, "", "")))
		p := callerOf(t, c, "orders", cluster.WithNear())
		answering(t, p, "near")
		require.NoError(t, near.Close())
		answering(t, p, "far")
		joined(t, in("eu", config(b, "orders", "back")))
		answering(t, p, "back")

		answering(t, callerOf(t, c, "orders", cluster.WithOnly(func(m cluster.Member) bool { return m.Region == "us" })), "far")
	})
}

func TestMembers_List(t *testing.T) {
	t.Parallel()
	b := natstest.StartServer(t, broker.Config{})
	cfg := listening(config(b, "orders", "a"))
	cfg.Region, cfg.Version, cfg.Metadata = "eu", "1.2.3", map[string]string{"rack": "7"}
	c := joined(t, cfg)
	joined(t, config(b, "orders", "b"))
	all, err := c.Members(t.Context(), "orders")
	require.NoError(t, err)
	require.Len(t, all, 2)
	a := all[0]
	require.Regexp(t, `^tcp://127.0.0.1:\d+$`, a.Addresses[0])
	require.WithinDuration(t, time.Now(), a.Since, time.Minute)
	require.NotEmpty(t, a.Instance)
	a.Since, a.Instance, a.Addresses = time.Time{}, "", nil
	require.EqualExportedValues(t, cluster.Member{Name: "orders", ID: "a", State: cluster.Present, Identity: "orders", Region: "eu", Version: "1.2.3", Metadata: map[string]string{"rack": "7"}}, a)

	none, err := c.Members(t.Context(), "nobody")
	require.NoError(t, err)
	require.Empty(t, none)
}

func TestJoin_SameIDOtherNames(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		svc := asterisque.NewService()
		ownID.Handle(svc, func(context.Context, struct{}) (string, error) { return "the other", nil })
		joined(t, config(b, "orders", "a"))
		joined(t, config(b, "stock", "a"), asterisque.WithService(svc))
		c := joined(t, config(b, "", ""))
		answering(t, callerOf(t, c, "orders"), "a")
		answering(t, callerOf(t, c, "stock"), "the other")
	})
}

func TestWatch_WhileInUse(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, config(b, "orders", "a"))
		c := joined(t, config(b, "", ""))
		first, second := callerOf(t, c, "orders"), callerOf(t, c, "orders")
		ask(t, first)
		ask(t, second)
		watched := func() int {
			s, err := jetStream(t, c).Stream(t.Context(), "KV_"+kv.BucketName("main", "nodes"))
			require.NoError(t, err)
			return s.CachedInfo().State.Consumers
		}
		require.Equal(t, 1, watched())
		require.NoError(t, first.Close())
		require.Equal(t, 1, watched())
		require.NoError(t, second.Close())
		require.Eventually(t, func() bool { return watched() == 0 }, natstest.Timeout, 10*time.Millisecond)
	})
}

func TestJoin_AfterClose(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, config(b, "orders", "a"))
		c := joined(t, config(b, "gone", "g"))
		p := callerOf(t, c, "orders")
		ask(t, p)
		require.NoError(t, c.Close())
		require.NoError(t, c.Close(), "repeated")
		require.ErrorIs(t, c.Err(), cluster.ErrClosed)
		_, err := ownID.Call(t.Context(), p, struct{}{})
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		_, err = c.Members(t.Context(), "orders")
		require.ErrorIs(t, err, cluster.ErrClosed)
		for range c.Watch(t.Context(), "orders") {
			t.Error("there is no error")
		}
		_, err = ownID.Call(t.Context(), c.Holder("key"), struct{}{})
		require.ErrorIs(t, err, asterisque.ErrUnavailable)
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

func TestJoin_ContextEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := cluster.Join(ctx, config(b, "orders", "a"))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestJoin_NotNATS(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go func() { // ends with ln
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("220 mail.example.org ESMTP\r\n"))
			c.Close()
		}
	}()
	_, err = cluster.Join(t.Context(), cluster.Config{NATS: "nats://" + ln.Addr().String()})
	require.ErrorContains(t, err, "connecting to NATS")
}

func TestJoin_PoolEnds(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, config(b, "orders", "a"))
		c := joined(t, config(b, "", ""))
		p, err := c.Caller(t.Context(), "orders")
		require.NoError(t, err)
		ask(t, p)
		require.NoError(t, c.Close())
		require.Eventually(t, func() bool { return errors.Is(p.Err(), cluster.ErrClosed) }, natstest.Timeout, time.Millisecond)
	})
}
