package cluster

import (
	"errors"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
)

var (
	// ErrClosed reports that this node has left the cluster by its Close or Shutdown.
	ErrClosed = errors.New("cluster: this node has left the cluster")

	// ErrNameTaken reports that nodes of another identity use the name. Join with another name,
	// with the same Config.Identity, or after they have left.
	ErrNameTaken = errors.New("cluster: the name is taken by another identity")

	// ErrReplaced reports that another node has joined with the name and the id of this one. This
	// node is no longer reachable by name; its sessions continue. A cause is a program that was
	// restarted while its old process still runs, or two programs with the same Config.ID.
	ErrReplaced = errors.New("cluster: another node has joined with the name and the id of this one")

	// ErrNoJetStream reports that the NATS server, or its account, has no JetStream, which a
	// cluster requires. Enable it: "jetstream {}" in the configuration of the server, "jetstream:
	// enabled" in that of the account.
	ErrNoJetStream = kv.ErrNoJetStream

	// ErrOtherCluster reports that the data under Config.Prefix belong to a cluster of another
	// name: two clusters share a NATS account by accident. Give each its own prefix, or its own
	// account.
	ErrOtherCluster = kv.ErrOtherCluster

	// ErrNoMember reports that no node with that name or id is in the cluster now.
	ErrNoMember = errors.New("cluster: no such node is in the cluster")
)

// BucketError reports that the limits of a bucket in JetStream, or of the stream of a [Queue],
// differ from those that the cluster needs. Change it ("nats kv edit", "nats stream edit"), or
// delete it: the next node that joins creates it with the right limits.
type BucketError struct {
	Bucket     string // or the stream
	What       string // the limit, such as "time to live"
	Want, Have string
}

// Error implements error.
func (e *BucketError) Error() string {
	return (*kv.LimitError)(e).Error()
}

// explain explains an error of NATS that occurred during what. before was the last error of the
// connection before.
func explain(nc *nats.Conn, before error, what string, err error) error {
	if errors.Is(err, ErrNameTaken) {
		return err // it is complete
	}
	return public(kv.Explain(nc, before, what, err))
}

// public returns err, or the BucketError that it wraps.
func public(err error) error {
	var l *kv.LimitError
	if errors.As(err, &l) {
		return (*BucketError)(l)
	}
	return err
}
