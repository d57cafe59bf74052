// Package presence knows which nodes of a cluster are there. Each node maintains its own entries
// ([Announcement]): one about itself, and a sign of life that expires. A [View] follows the entries
// of a name, and a [Watcher] turns a view into changes: joined, changed, draining, left, lost.
//
// Nodes do not watch the signs of life of each other, so the cost of a node does not grow with the
// number of all nodes. A lost node is removed by the one node that is the [Reaper] at that time, or
// sooner by a peer that cannot reach it ([Reporter]). Both only delete entries, and a node that is
// alive after all writes its entries again at its next sign of life.
package presence

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/internal/wait"
)

// Env has the connection, the buckets and the periods that the parts of this package share.
type Env struct { // fixed
	NATS      *nats.Conn
	JetStream jetstream.JetStream

	// Nodes has an entry of each node, which the node updates only when it changes, so that
	// watchers of a name receive only changes. Alive has another one, which the node renews
	// periodically, and which expires when the node stops.
	Nodes, Alive jetstream.KeyValue

	// Life is the time without a sign of life after which a node is lost, and Beat the interval of
	// the signs.
	Life, Beat time.Duration

	// Reconnected reports that NATS has reconnected, or may have lost its data.
	Reconnected *wait.Notice

	// Reopen creates missing buckets.
	Reopen func(ctx context.Context) error

	Logger *slog.Logger
}

var (
	// ErrNameTaken reports that nodes of another identity use the name.
	ErrNameTaken = errors.New("cluster: the name is taken by another identity")

	// ErrReplaced reports that another node has joined with the name and the id of this one.
	ErrReplaced = errors.New("cluster: another node has joined with the name and the id of this one")
)

// explained is kv.Explain, except for an ErrNameTaken, which is complete.
func explained(nc *nats.Conn, before error, what string, err error) error {
	if errors.Is(err, ErrNameTaken) {
		return err
	}
	return kv.Explain(nc, before, what, err)
}
