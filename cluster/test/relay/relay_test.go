package relay_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/internal/relay"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/wait"
	"github.com/asterisque-go/asterisque/wire/natswire"
)

// connected returns the relay of the node "a" of orders, with its links, on a server of its own.
func connected(t *testing.T) (*relay.Relay, relay.Links) {
	t.Helper()
	nc := natstest.Connect(t, natstest.StartServer(t, broker.Config{}))
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	bucket := func(name string) jetstream.KeyValue {
		b, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: name, Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
		return b
	}
	node := asterisque.NewNode()
	t.Cleanup(func() { node.Close() })
	links := relay.Links{NATS: nc, Node: node, Alive: bucket("alive"), Records: bucket("sessions"), Reconnected: new(wait.Notice)}
	r := relay.New(relay.Config{
		Name: "orders", ID: "a", Life: 15 * time.Second, RecordLife: time.Hour,
		Subject: func(id string) string { return "main.orders." + id + ".resume" },
	})
	require.NoError(t, r.Connect(links))
	return r, links
}

func TestRelay_Records(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		r, links := connected(t)
		record := asterisque.SessionRecord{Session: asterisque.SessionID{1}, Node: "a"}
		require.NoError(t, r.Resume().Records.Put(t.Context(), record))
		other := relay.New(relay.Config{Name: "orders", ID: "b"})
		require.NoError(t, other.Connect(links))
		got, ok, err := other.Resume().Records.Get(t.Context(), record.Session)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, record, got)
		require.NoError(t, r.Resume().Records.Delete(t.Context(), record.Session))
		_, ok, err = other.Resume().Records.Get(t.Context(), record.Session)
		require.NoError(t, err)
		require.False(t, ok)
	})
}

func TestRelay_SessionEnded(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		r, _ := connected(t)
		ended, end := context.WithCancel(t.Context())
		end()
		record := asterisque.SessionRecord{Session: asterisque.SessionID{1}, Node: "a"}
		records := r.Resume().Records
		require.NoError(t, records.Delete(t.Context(), record.Session))
		require.ErrorIs(t, records.Put(ended, record), context.Canceled)
		_, ok, err := records.Get(t.Context(), record.Session)
		require.NoError(t, err)
		require.False(t, ok, "it would be put again for ever")
	})
}

func TestRelay_AbsentNode(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		r, links := connected(t)
		_, err := links.Alive.PutString(t.Context(), "orders.b", "it lives")
		require.NoError(t, err)
		record := asterisque.SessionRecord{Session: asterisque.SessionID{1}, Node: "b"}
		peer := asterisque.Peer{RemoteAddr: &net.TCPAddr{IP: net.IPv4(1, 2, 3, 4), Port: 5}}
		_, err = r.Resume().Elsewhere(t.Context(), record, peer)
		require.ErrorIs(t, err, natswire.ErrNobody, "it may reconnect: its sign of life is there")
		fakeclock.Sleep(4 * time.Second)
		w, err := r.Resume().Elsewhere(t.Context(), record, peer)
		require.NoError(t, err)
		require.Nil(t, w, "it is gone, although its sign of life is there")
		require.NoError(t, links.Alive.Delete(t.Context(), "orders.b"))
		w, err = r.Resume().Elsewhere(t.Context(), record, peer)
		require.NoError(t, err)
		require.Nil(t, w, "it is gone at once without a sign of life")
	})
}
