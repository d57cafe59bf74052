package main

import (
	"context"

	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/broker"
)

// startBroker starts a NATS server that runs until the test ends, and returns its URL.
func startBroker(t *testing.T) string {
	b, err := broker.Start(broker.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b.URL()
}

// joinReplica adds a replica to the cluster until the test ends, and returns it and its URL.
func joinReplica(t *testing.T, nats, id string) (r *replica, at string) {
	addrs, err := freeAddrs(1)
	require.NoError(t, err)
	o := &options{part: "replica", nats: nats, id: id, listen: addrs[0], servers: 1, dir: t.TempDir()}
	j, err := openJournal(o.journal())
	require.NoError(t, err)
	r = &replica{id: id, ledger: newLedger(j)}
	require.NoError(t, r.join(t.Context(), o, slog.New(slog.DiscardHandler)))
	t.Cleanup(func() {
		require.NoError(t, r.close())
		require.NoError(t, j.close())
	})
	return r, o.listen
}

// says returns how often the journal of a replica contains a text.
func says(t *testing.T, r *replica, text string) int {
	lines, err := r.ledger.journal.lines()
	require.NoError(t, err)
	return strings.Count(strings.Join(lines, "\n"), text)
}

func newClient(t *testing.T) *asterisque.Node {
	n := asterisque.NewNode(resuming(asterisque.WithLogger(slog.New(slog.DiscardHandler)))...)
	t.Cleanup(func() { n.Close() })
	return n
}

// An order that is placed again at another replica is answered from the record.
func TestOrder_FromTheRecord(t *testing.T) {
	nats := startBroker(t)
	a, atA := joinReplica(t, nats, "orders-a")
	b, atB := joinReplica(t, nats, "orders-b")
	n, key, call := newClient(t), asterisque.WithIdempotencyKey(newKey()), number{"me", 1}
	for _, at := range []string{atA, atB} {
		s, err := n.Dial(t.Context(), "tcp://"+at)
		require.NoError(t, err)
		got, err := placeOrder.Call(t.Context(), s, order{call, 1}, key)
		require.NoError(t, err)
		require.Equal(t, receipt{call, "orders-a"}, got)
	}
	require.Equal(t, 1, says(t, a, "ran me 1"))
	require.Zero(t, says(t, a, "noted"), "it has run there")
	require.Zero(t, says(t, b, "ran me"))
	require.Equal(t, 1, says(t, b, "noted me 1 "+fromAnother))
}

// A session is resumed at its replica, or through another one.
func TestSession_ResumedAnywhere(t *testing.T) {
	nats := startBroker(t)
	a, atA := joinReplica(t, nats, "orders-a")
	b, atB := joinReplica(t, nats, "orders-b")
	d := doorTo(t, atA, atB)
	to, err := newClient(t).Connect(t.Context(), d.url(), soon)
	require.NoError(t, err)
	session := to.Session()
	seen := func(what string) bool { return says(t, a, what)+says(t, b, what) > 0 }
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	for n := uint64(1); !seen(resumedThere) || !seen(resumedElsewhere); n++ {
		if w := d.wires.take(); w != nil {
			w.cut()
		}
		_, err := placeOrder.Call(ctx, to, order{number{"me", n}, 1})
		require.NoError(t, err, "a plain call that waits for its session")
	}
	require.Same(t, session, to.Session())
}
