package cluster

import (
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/cluster/internal/lease"
	"github.com/asterisque-go/asterisque/cluster/internal/presence"
)

var (
	// ErrClosed reports that this node has left the cluster by its Close or Shutdown.
	ErrClosed = errors.New("cluster: this node has left the cluster")

	// ErrNameTaken reports that nodes of another identity use the name. Join with another name,
	// with the same Config.Identity, or after they have left.
	ErrNameTaken = presence.ErrNameTaken

	// ErrReplaced reports that another node has joined with the name and the id of this one. This
	// node is no longer reachable by name; its sessions continue. A cause is a program that was
	// restarted while its old process still runs, or two programs with the same Config.ID.
	ErrReplaced = presence.ErrReplaced

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

// ErrLost is the error of a lost claim ([Claim.Err]): another node has taken the key over, or this
// node could not renew its lease in time. The error itself is a [*LostError]. Stop the work that
// requires the claim, and claim the key again to continue on this node.
var ErrLost = lease.ErrLost

// ErrReleased is the error of [Claim.Err] after [Claim.Release], and after the node has left the
// cluster.
var ErrReleased = lease.ErrReleased

// HeldError reports that a key cannot be claimed because a node, possibly this one, holds it. Wait
// for the key, or take it over.
type HeldError struct {
	Key    string
	Holder string // the id of the node; empty if this package did not write the entry in NATS
	Epoch  uint64 // of the claim of that node
}

// Error names the key, the node and the epoch.
func (e *HeldError) Error() string {
	return fmt.Sprintf("cluster: %q is held by the node %q with epoch %d: wait until it is free, or take it over", e.Key, e.Holder, e.Epoch)
}

// LostError reports why a claim was lost. It is an [ErrLost].
type LostError struct {
	Key         string
	Epoch       uint64 // of the lost claim
	Holder      string // the id of the present holder; empty if unknown
	HolderEpoch uint64 // of the present holder's claim; 0 if unknown
	Cause       error  // why the renewal failed, if known
}

// Error contains the key, the epoch, and the present holder or the reason why the claim was not
// renewed.
func (e *LostError) Error() string {
	text := fmt.Sprintf("%v: %q with epoch %d", ErrLost, e.Key, e.Epoch)
	switch {
	case e.Holder != "":
		text += fmt.Sprintf(": the node %q holds it with epoch %d", e.Holder, e.HolderEpoch)
	case e.Cause != nil:
		text += ": " + e.Cause.Error()
	}
	return text + "; stop the work that needs it, and claim it again to continue"
}

// Unwrap returns ErrLost, and Cause if there is one.
func (e *LostError) Unwrap() []error {
	if e.Cause == nil {
		return []error{ErrLost}
	}
	return []error{ErrLost, e.Cause}
}

// explain returns an error of NATS that occurred during what, as an error of this package. before
// was the last error of the connection before.
func explain(nc *nats.Conn, before error, what string, err error) error {
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
