package cluster

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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
	ErrNoJetStream = errors.New("cluster: JetStream is not enabled for this account of the NATS server")

	// ErrOtherCluster reports that the data under Config.Prefix belong to a cluster of another
	// name: two clusters share a NATS account by accident. Give each its own prefix, or its own
	// account.
	ErrOtherCluster = errors.New("cluster: the prefix belongs to another cluster")

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
	return fmt.Sprintf("cluster: %s in JetStream has a %s of %s, and %s is needed; change it, or delete it while no node is there", e.Bucket, e.What, e.Have, e.Want)
}

// explain explains an error of NATS that occurred during what. before was the last error of the
// connection before.
func explain(nc *nats.Conn, before error, what string, err error) error {
	var bucket *BucketError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNameTaken), errors.Is(err, ErrOtherCluster), errors.As(err, &bucket):
		return err // it is complete
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w (%s: %w)", ErrNoJetStream, what, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w, or it is away (%s: %w)", ErrNoJetStream, what, err)
	}
	return fmt.Errorf("cluster: %s: %w", what, permission(nc, before, "", err))
}

// permission returns err, or the permission violation that the NATS server has reported since
// before, at a subject that contains part. The server reports it asynchronously instead of an
// answer. After several reports, only the last one is known.
func permission(nc *nats.Conn, before error, part string, err error) error {
	last := nc.LastError()
	if last == before || !errors.Is(last, nats.ErrPermissionViolation) || !strings.Contains(last.Error(), part) {
		return err
	}
	return fmt.Errorf("the NATS server does not allow it: %w", last)
}

// denied reports whether the last permission violation of a connection was a publish to subject.
func denied(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

// entrySubject returns the subject to which an entry of a bucket is written.
func entrySubject(kv jetstream.KeyValue, key string) string { return "$KV." + kv.Bucket() + "." + key }

// patience is the timeout for one answer of NATS.
const patience = 5 * time.Second
