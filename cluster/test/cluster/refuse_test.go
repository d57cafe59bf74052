package cluster_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

func TestJoin_NameTaken(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		of := func(identity, id string) cluster.Config {
			cfg := config(b, "orders", id)
			cfg.Identity = identity
			return cfg
		}
		a := joined(t, of("orders.example.org", "a"))
		_, err := cluster.Join(t.Context(), of("rogue.example.org", "b"))
		require.ErrorIs(t, err, cluster.ErrNameTaken)
		require.ErrorContains(t, err, `orders belongs to "orders.example.org", which has the node a since`)
		require.ErrorContains(t, err, `this node's Config.Identity is "rogue.example.org"`)
		all, err := a.Members(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, all, 1)

		joined(t, of("orders.example.org", "c")).Close()
		require.NoError(t, a.Close())
		joined(t, of("rogue.example.org", "b")) // no node has the name any more
		_, err = cluster.Join(t.Context(), of("orders.example.org", "a"))
		require.ErrorIs(t, err, cluster.ErrNameTaken)
	})
}

func TestJoin_NameRace(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		for range 10 {
			errs := make(chan error, 2)
			all := make(chan *cluster.Cluster, 2)
			for _, ownID := range []string{"a", "b"} {
				go func() { // ends with Join
					cfg := config(b, "orders", ownID)
					cfg.Identity = ownID
					c, err := cluster.Join(context.Background(), cfg)
					if err == nil {
						all <- c
					}
					errs <- err
				}()
			}
			first, second := <-errs, <-errs
			require.False(t, first == nil && second == nil, "both have the name")
			for len(all) > 0 {
				(<-all).Close()
			}
		}
	})
}

func TestJoin_Errors(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dials  bool // it needs real addresses
		server func(o *server.Options)
		config func(c *cluster.Config)
		err    error  // nil: any
		text   string // a part of it
	}{
		"no JetStream": {server: func(o *server.Options) { o.JetStream = false }, err: cluster.ErrNoJetStream, text: "JetStream is not enabled"},
		"a small max_payload": {server: func(o *server.Options) { o.MaxPayload = 1024 },
			text: "max_payload of the NATS server is 1024 bytes, and a Wire needs 20480 at least; raise max_payload"},
		"no server":                  {dials: true, config: func(c *cluster.Config) { c.NATS = "nats://127.0.0.1:1" }, text: "connecting to NATS"},
		"no URL":                     {config: func(c *cluster.Config) { c.NATS = "nats://[" }, text: "connecting to NATS"},
		"a bad name":                 {config: func(c *cluster.Config) { c.Name = "or.ders" }, text: `Config.Name is "or.ders": it has 1 to 64 letters`},
		"a long id":                  {config: func(c *cluster.Config) { c.ID = strings.Repeat("a", 65) }, text: "Config.ID"},
		"a bad prefix":               {config: func(c *cluster.Config) { c.Prefix = ">" }, text: "Config.Prefix"},
		"two replicas":               {config: func(c *cluster.Config) { c.Replicas = 2 }, text: "Config.Replicas is 2: it is 1, 3 or 5"},
		"more replicas than servers": {config: func(c *cluster.Config) { c.Replicas = 3 }, text: "asterisque_main_nodes"},
		"no name, and an address":    {config: func(c *cluster.Config) { c.Name = ""; c.Listen = []string{"tcp://127.0.0.1:0"} }, text: "Config.Name is empty"},
		"no such scheme":             {config: func(c *cluster.Config) { c.Addresses = []string{"pigeon://roof"} }, err: wire.ErrURL, text: "pigeon"},
		"nine addresses":             {config: func(c *cluster.Config) { c.Addresses = make([]string, 9) }, text: "there are 9 addresses, and at most 8"},
		"an unreachable address":     {dials: true, config: func(c *cluster.Config) { c.Listen = []string{"tcp://0.0.0.0:0"} }, text: "other nodes cannot dial: set Config.Addresses"},
		"an address that is in use":  {dials: true, config: func(c *cluster.Config) { c.Listen = []string{strings.Replace(c.NATS, "nats:", "tcp:", 1)} }, text: "in use"},
		"much metadata": {config: func(c *cluster.Config) {
			c.Metadata = map[string]string{"k": strings.Repeat("v", mostMetadata)}
		}, text: "Config.Metadata has 4097 bytes, and 4096 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := natstest.Bubble
			if test.dials {
				run = func(t *testing.T, f func(t *testing.T)) { f(t) }
			}
			run(t, func(t *testing.T) {
				cfg := config(natstest.StartServer(t, broker.Config{Change: test.server}), "orders", "a")
				if test.config != nil {
					test.config(&cfg)
				}
				c, err := cluster.Join(t.Context(), cfg)
				require.Nil(t, c)
				require.ErrorContains(t, err, test.text)
				if test.err != nil {
					require.ErrorIs(t, err, test.err)
				}
			})
		})
	}
}

func TestJoin_PayloadError(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{Change: func(o *server.Options) { o.MaxPayload = 600 }})
		_, err := cluster.Join(t.Context(), config(b, "orders", "a"))
		var small *natswire.PayloadError
		require.ErrorAs(t, err, &small)
		require.EqualValues(t, 600, small.Limit)
	})
}

func TestJoin_OtherLimits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change     func(c *jetstream.KeyValueConfig)
		what, have string
	}{
		"time to live":  {func(c *jetstream.KeyValueConfig) { c.TTL = time.Hour }, "time to live", "1h0m0s"},
		"history":       {func(c *jetstream.KeyValueConfig) { c.History = 5 }, "history", "5"},
		"largest value": {func(c *jetstream.KeyValueConfig) { c.MaxValueSize = 100 }, "largest value", "100"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			natstest.Bubble(t, func(t *testing.T) {
				b := natstest.StartServer(t, broker.Config{})
				made := jetstream.KeyValueConfig{Bucket: "asterisque_main_alive", TTL: lifeTime, Metadata: map[string]string{kv.ClusterKey: "asterisque"}}
				test.change(&made)
				c := joined(t, prefixed(config(b, "other", "o"), "other"))
				_, err := jetStream(t, c).CreateKeyValue(t.Context(), made)
				require.NoError(t, err)
				_, err = cluster.Join(t.Context(), config(b, "orders", "a"))
				var other *cluster.BucketError
				require.ErrorAs(t, err, &other)
				require.Equal(t, []string{"asterisque_main_alive", test.what, test.have}, []string{other.Bucket, other.What, other.Have})
				require.ErrorContains(t, err, "change it, or delete it")
			})
		})
	}
}

func prefixed(cfg cluster.Config, prefix string) cluster.Config {
	cfg.Prefix = prefix
	return cfg
}

func TestJoin_OtherCluster(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		in := func(cluster string, cfg cluster.Config) cluster.Config { cfg.Cluster = cluster; return cfg }
		joined(t, in("production", config(b, "orders", "a")))
		_, err := cluster.Join(t.Context(), in("staging", config(b, "orders", "b")))
		require.ErrorIs(t, err, cluster.ErrOtherCluster)
		require.ErrorContains(t, err, `that of the cluster "production", and this node is to join "staging"`)
		c := joined(t, prefixed(in("staging", config(b, "orders", "b")), "staging"))
		answering(t, callerOf(t, c, "orders"), "b")
	})
}

func TestJoin_ResumeInPlain(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		_, err := cluster.Join(t.Context(), config(b, "orders", "a"), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		require.ErrorContains(t, err, "PlainCredentials")
		plain := asterisque.WithAccess(asterisque.Access{PlainCredentials: true})
		c, err := cluster.Join(t.Context(), config(b, "orders", "a"), asterisque.WithResume(asterisque.Resume{For: time.Minute}), plain)
		require.NoError(t, err)
		require.NoError(t, c.Close())
	})
}

func TestMembers_BadEntries(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		c := joined(t, config(b, "orders", "a"))
		for key, value := range map[string]string{
			"orders.x": "no JSON", "orders.y": `{"name":"orders","id":"other"}`, "orders.z": `{"name":5}`,
			"orders.v": `{"name":"orders","id":"v","addresses":["a","b","c","d","e","f","g","h","i"]}`,
			"orders.w": `{"name":"orders","id":"w","addresses":["pigeon://roof","tcp://","%"],"metadata":{"a":"b"}}`,
		} {
			_, err := bucket(t, c, "nodes").PutString(t.Context(), key, value)
			require.NoError(t, err)
		}
		all, err := c.Members(t.Context(), "orders")
		require.NoError(t, err)
		require.Len(t, all, 2, "w says nothing that is wrong, and cannot be reached")
		answering(t, callerOf(t, c, "orders"), "a")
	})
}

// A node that would store its data otherwise than the others of the cluster cannot join.
func TestJoin_OtherStorage(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		b := natstest.StartServer(t, broker.Config{})
		joined(t, config(b, "orders", "a"))
		cfg := config(b, "orders", "b")
		cfg.InMemory = !cfg.InMemory
		_, err := cluster.Join(t.Context(), cfg)
		var differs *cluster.BucketError
		require.ErrorAs(t, err, &differs)
		require.Equal(t, cluster.BucketError{Bucket: "asterisque_main_nodes", What: "storage", Want: "File", Have: "Memory"}, *differs)
	})
}
