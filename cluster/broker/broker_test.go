package broker_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

func start(t *testing.T, c broker.Config) *broker.Broker {
	t.Helper()
	b, err := broker.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// jetStream connects to servers until t ends.
func jetStream(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	return js
}

func TestStart_JetStream(t *testing.T) {
	b := start(t, broker.Config{})
	kv, err := jetStream(t, b.URL()).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "key", "value")
	require.NoError(t, err)
}

func TestDir_KeepsData(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made")
	b := start(t, broker.Config{Dir: dir})
	addr := b.Server().Addr().String()
	kv, err := jetStream(t, b.URL()).CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "b"})
	require.NoError(t, err)
	_, err = kv.PutString(t.Context(), "key", "value")
	require.NoError(t, err)
	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "repeated")

	b = start(t, broker.Config{Dir: dir, Addr: addr})
	require.Equal(t, "nats://"+addr, b.URL())
	kv, err = jetStream(t, b.URL()).KeyValue(t.Context(), "b")
	require.NoError(t, err)
	e, err := kv.Get(t.Context(), "key")
	require.NoError(t, err)
	require.Equal(t, "value", string(e.Value()))
}

func TestDir_TemporaryIsRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b := start(t, broker.Config{})
	left, err := os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.NotEmpty(t, left)
	require.NoError(t, b.Close())
	left, err = os.ReadDir(os.TempDir())
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestRoutes_ThreeServers(t *testing.T) {
	routes := freeAddrs(t, 3)
	var all [3]*broker.Broker
	for i := range all {
		all[i] = start(t, broker.Config{Name: string('a' + rune(i)), At: routes[i], Routes: routes, Dir: t.TempDir()})
	}
	js := jetStream(t, all[0].URL())
	kept := func() bool { // the servers have to meet first
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "b", Replicas: 3})
		if err != nil {
			return false
		}
		s, err := js.Stream(ctx, "KV_b")
		if err != nil {
			return false
		}
		others := s.CachedInfo().Cluster.Replicas
		return len(others) == 2 && others[0].Current && others[1].Current
	}
	require.Eventually(t, kept, 2*time.Minute, 50*time.Millisecond)
}

// freeAddrs returns addresses without a listener.
func freeAddrs(t *testing.T, n int) (addrs []string) {
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer ln.Close()
		addrs = append(addrs, ln.Addr().String())
	}
	return addrs
}

func TestStart_Error(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("wrong = {"), 0o600))
	for name, test := range map[string]struct {
		config broker.Config
		want   string
	}{
		"an address in use":    {broker.Config{Addr: taken.Addr().String()}, "in use"},
		"no address":           {broker.Config{Addr: "here"}, `"here" is no host:port, such as 127.0.0.1:4222`},
		"no port":              {broker.Config{Addr: "127.0.0.1:many"}, "no host:port"},
		"half of a cluster":    {broker.Config{Routes: []string{"127.0.0.1:1"}}, "needs a Name, Routes, and At"},
		"a route to nowhere":   {broker.Config{Name: "a", At: "127.0.0.1:0", Routes: []string{"b"}}, `"b" is no host:port`},
		"no configuration":     {broker.Config{ConfigFile: "none.conf"}, "none.conf"},
		"a file for a folder":  {broker.Config{Dir: filepath.Join(file, "js")}, "file"},
		"a configuration file": {broker.Config{ConfigFile: file}, file},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := broker.Start(test.config)
			require.Nil(t, b)
			require.ErrorContains(t, err, test.want)
		})
	}
}
