package cluster_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// visible makes a node offer ownID, to plain NATS clients as well.
func visible(cfg cluster.Config) cluster.Config {
	svc := asterisque.NewService()
	ownID.Handle(svc, func(context.Context, struct{}) (string, error) { return cfg.ID, nil })
	cfg.Service, cfg.Endpoints = svc, []cluster.Endpoint{{Function: ownID.Number()}}
	cfg.Version, cfg.Region = "1.2.3", "eu"
	return cfg
}

func TestShow_Tools(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c, err := cluster.Join(t.Context(), visible(config(b, "orders", "a")))
		require.NoError(t, err)
		defer c.Close()
		nc := natstest.Connect(t, b)
		m, err := natstest.Request(nc, "$SRV.INFO.orders", nil, natstest.Timeout)
		require.NoError(t, err)
		var info micro.Info
		require.NoError(t, json.Unmarshal(m.Data, &info))
		require.Equal(t, []string{"orders", "a", "1.2.3", "eu"}, []string{info.Name, info.ID, info.Version, info.Metadata["asterisque.region"]})
		require.Equal(t, "orders.ownID", info.Endpoints[0].Subject)

		m, err = natstest.Request(nc, "orders.ownID", []byte("{}"), natstest.Timeout)
		require.NoError(t, err)
		require.Equal(t, `"a"`, string(m.Data))

		require.NoError(t, c.Shutdown(t.Context()))
		for _, subject := range []string{"$SRV.INFO.orders", "orders.ownID"} {
			_, err = natstest.Request(nc, subject, nil, natstest.Timeout)
			require.ErrorIs(t, err, nats.ErrNoResponders)
		}
	})
}

func TestShow_Hidden(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		cfg := visible(config(b, "orders", "a"))
		cfg.Hidden = true
		joined(t, cfg)
		c := joined(t, config(b, "", ""))
		answering(t, callerOf(t, c, "orders"), "a")
		_, err := natstest.Request(c.Conn(), "$SRV.PING", nil, time.Second)
		require.ErrorIs(t, err, nats.ErrNoResponders)
	})
}

func TestShow_JoinErrors(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		for want, change := range map[string]func(c *cluster.Config){
			`the version "first" is no semantic version`: func(c *cluster.Config) { c.Version = "first" },
			"has no such function":                       func(c *cluster.Config) { c.Endpoints[0].Function = 99 },
		} {
			cfg := visible(config(b, "orders", "a"))
			change(&cfg)
			_, err := cluster.Join(t.Context(), cfg)
			require.ErrorContains(t, err, want)
		}
	})
}
