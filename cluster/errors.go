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
	// ErrClosed says that this node has left the cluster: Close or Shutdown was called here.
	ErrClosed = errors.New("cluster: this node has left the cluster")

	// ErrNameTaken says that nodes of another identity are joined with the name. Join with another
	// name, with the same Config.Identity, or when they have left.
	ErrNameTaken = errors.New("cluster: the name is taken by another identity")

	// ErrReplaced says that another node has joined with the name and the id of this one, which
	// therefore is reachable by name no more; its sessions go on. A program that was started again
	// while the old one still runs does that, and so do two programs with one Config.ID.
	ErrReplaced = errors.New("cluster: another node has joined with the name and the id of this one")

	// ErrNoJetStream says that the NATS server, or the account there, has no JetStream, in which
	// the nodes of a cluster are kept. Enable it: "jetstream {}" in the configuration of the
	// server, "jetstream: enabled" in that of the account.
	ErrNoJetStream = errors.New("cluster: JetStream is not enabled for this account of the NATS server")

	// ErrOtherCluster says that what is kept under Config.Prefix belongs to a cluster of another
	// name: two clusters share an account of NATS by accident. Give each its own prefix, or its own
	// account.
	ErrOtherCluster = errors.New("cluster: the prefix belongs to another cluster")

	// ErrNoMember says that no node with such a name or id is in the cluster now.
	ErrNoMember = errors.New("cluster: no such node is in the cluster")
)

// BucketError says that a bucket in JetStream, or the stream of a [Queue], has other limits than
// the cluster needs. Change it ("nats kv edit", "nats stream edit"), or delete it, and the next
// node that joins makes it as it has to be.
type BucketError struct {
	Bucket     string // or the stream
	What       string // the limit, such as "time to live"
	Want, Have string
}

// Error implements error.
func (e *BucketError) Error() string {
	return fmt.Sprintf("cluster: %s in JetStream has a %s of %s, and %s is needed; change it, or delete it while no node is there", e.Bucket, e.What, e.Have, e.Want)
}

// explain says what an error of NATS means that came while what was done on a connection, whose
// last error was another one before.
func explain(nc *nats.Conn, before error, what string, err error) error {
	var bucket *BucketError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNameTaken), errors.Is(err, ErrOtherCluster), errors.As(err, &bucket):
		return err // it says all
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w (%s: %w)", ErrNoJetStream, what, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w, or it is away (%s: %w)", ErrNoJetStream, what, err)
	}
	return fmt.Errorf("cluster: %s: %w", what, permission(nc, before, "", err))
}

// permission returns err, or what the NATS server has not allowed since before at a subject with a
// part: of that there is no answer, but a message beside. Where several messages come, only the
// last one is known.
func permission(nc *nats.Conn, before error, part string, err error) error {
	last := nc.LastError()
	if last == before || !errors.Is(last, nats.ErrPermissionViolation) || !strings.Contains(last.Error(), part) {
		return err
	}
	return fmt.Errorf("the NATS server does not allow it: %w", last)
}

// denied reports whether the last thing that the NATS server has not allowed on a connection is to
// publish to a subject.
func denied(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

// entrySubject returns where an entry of a bucket is written to.
func entrySubject(kv jetstream.KeyValue, key string) string { return "$KV." + kv.Bucket() + "." + key }

// patience is how long NATS has for one answer.
const patience = 5 * time.Second
