package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// reserved reports whether a subject belongs to the NATS server: $JS, $KV, $SYS and so on. Such a
// one is no place for an answer. A node may well publish to $JS.API.STREAM.DELETE.name or to a key
// of a bucket, and would do so for anybody who may send it a request: the server does not ask
// whether the sender of a request may publish where the answer is to go.
func reserved(subject string) bool { return strings.HasPrefix(subject, "$") }

// subscribeTime is how long the server may take to say whether it allows a subscription.
const subscribeTime = 5 * time.Second

// subscribed waits until the server has seen subscriptions, and returns its error if it does not
// allow one of their subjects. The last error of the connection was another one before.
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
