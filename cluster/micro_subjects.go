package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// reserved reports whether a subject belongs to the NATS server: $JS, $KV, $SYS and so on. A reply
// must not go to such a subject. A node may have permission to publish to
// $JS.API.STREAM.DELETE.name or to a key of a bucket, and would do so for any sender of a request:
// the server does not check whether the sender may publish to the reply subject.
func reserved(subject string) bool { return strings.HasPrefix(subject, "$") }

// subscribeTime is the time limit for the server to confirm a subscription.
const subscribeTime = 5 * time.Second

// subscribed waits until the server has processed subscriptions, and returns its error if it does
// not allow one of their subjects. before was the last error of the connection before.
func subscribed(ctx context.Context, nc *nats.Conn, before error, subjects ...string) error {
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
