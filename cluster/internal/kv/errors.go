// Package kv has the conventions by which the nodes of a cluster use JetStream: how a bucket or a
// stream is opened, created and compared with the required limits ([Open], [OpenStream], [Check],
// [Differing]); how entries are read so that no server that lags behind gives an old answer
// ([Store]), or listed and watched without a wait for ever ([Snapshot], [Watch]); the timeouts and
// the delays of retries ([RequestTimeout], [Backoff], [Retry]); and the meaning of errors
// ([Explain], [IsConflict], [IsFull], [IsRejected]). NATS reports a missing permission to the
// connection and not to the request: [Permission], [Denied] and [Subscribed] bring both together.
//
// The package knows no nodes, claims or calls.
package kv

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var (
	// ErrNoJetStream reports that the NATS server, or its account, has no JetStream.
	ErrNoJetStream = errors.New("cluster: JetStream is not enabled for this account of the NATS server")

	// ErrOtherCluster reports that a bucket or a stream belongs to a cluster of another name.
	ErrOtherCluster = errors.New("cluster: the prefix belongs to another cluster")
)

// LimitError reports a limit of a bucket or a stream that differs from the required one.
type LimitError struct {
	Bucket     string // or the stream
	What       string // the limit, such as "time to live"
	Want, Have string
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("cluster: %s in JetStream has a %s of %s, and %s is needed; change it, or delete it while no node is there", e.Bucket, e.What, e.Have, e.Want)
}

// Explain returns an error of NATS with its context, the operation what. It returns
// [ErrOtherCluster] and a [*LimitError] as they are, and an [ErrNoJetStream] if JetStream is
// missing. before was the last error of the connection before the operation.
func Explain(nc *nats.Conn, before error, what string, err error) error {
	var limit *LimitError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrOtherCluster), errors.As(err, &limit):
		return err // it is complete
	case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
		return fmt.Errorf("%w (%s: %w)", ErrNoJetStream, what, err)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse):
		return fmt.Errorf("%w, or it is away (%s: %w)", ErrNoJetStream, what, err)
	}
	return fmt.Errorf("cluster: %s: %w", what, Permission(nc, before, "", err))
}

// Permission returns err, or the permission violation that the NATS server has reported since
// before, at a subject that contains part. The server reports it asynchronously instead of an
// answer. After several reports, only the last one is known.
func Permission(nc *nats.Conn, before error, part string, err error) error {
	last := nc.LastError()
	if last == before || !errors.Is(last, nats.ErrPermissionViolation) || !strings.Contains(last.Error(), part) {
		return err
	}
	return fmt.Errorf("the NATS server does not allow it: %w", last)
}

// Denied reports whether the last permission violation of a connection was a publish to subject.
func Denied(nc *nats.Conn, subject string) bool {
	err := nc.LastError()
	return errors.Is(err, nats.ErrPermissionViolation) && strings.Contains(err.Error(), `"`+subject+`"`)
}

// EntrySubject returns the subject to which an entry of a bucket is written.
func EntrySubject(kv jetstream.KeyValue, key string) string { return "$KV." + kv.Bucket() + "." + key }

// subscribeTime is the time limit for the server to confirm a subscription.
const subscribeTime = 5 * time.Second

// Subscribed waits until the server has processed subscriptions, and returns its error if it does
// not allow one of their subjects. before was the last error of the connection before.
func Subscribed(ctx context.Context, nc *nats.Conn, before error, subjects ...string) error {
	ctx, cancel := context.WithTimeout(ctx, subscribeTime)
	defer cancel()
	if err := nc.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("the NATS server does not say whether it allows to subscribe to %s: %w", strings.Join(subjects, ", "), err)
	}
	err := nc.LastError()
	if err == before || !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	for _, s := range subjects {
		if strings.Contains(err.Error(), `"`+s+`"`) {
			return fmt.Errorf("the permissions of this user of the NATS server do not suffice; it needs to subscribe to %s: %w", s, err)
		}
	}
	return nil
}

// IsConflict reports whether a write failed because the entry has another revision.
func IsConflict(err error) bool { return errors.Is(err, jetstream.ErrKeyRevisionMismatch) }

// fullCodes are the error codes of JetStream for writes beyond a limit of the stream, of the memory
// and the disks of its servers, or of the account.
var fullCodes = []jetstream.ErrorCode{10077, 10002, 10023, 10028, 10047}

// IsFull reports whether a write failed for lack of room.
func IsFull(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(fullCodes, api.ErrorCode)
}

// IsTooLarge reports whether a write failed for lack of room, or because it exceeds the maximum
// message size.
func IsTooLarge(err error) bool { return IsFull(err) || errors.Is(err, nats.ErrMaxPayload) }

// IsRejected reports whether a write certainly failed.
func IsRejected(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) || errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload)
}
