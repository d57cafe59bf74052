package testkit

import (
	"context"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

// BytesOf returns limits in bytes.
func BytesOf(soft, hard int) limits.Limits {
	return limits.Limits{Soft: limits.Amount{Bytes: soft}, Hard: limits.Amount{Bytes: hard}}
}

// Messages returns limits in messages.
func Messages(soft, hard int) limits.Limits {
	return limits.Limits{Soft: limits.Amount{Messages: soft}, Hard: limits.Amount{Messages: hard}}
}

// NoWindows disables windows, so that only the soft and hard limits remain.
func NoWindows() []asterisque.Option {
	return []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Window: -1})}
}

// LittleRoom sets limits with room for about thirty small waiting calls.
func LittleRoom() asterisque.Option {
	return asterisque.WithLimits(asterisque.Limits{Inbound: BytesOf(64<<10, 256<<10)})
}

// Named accepts the node name of each peer as its Subject, without a proof.
func Named() asterisque.Option {
	return asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: p.ID}, nil
	}})
}

// DrainOf bounds the time for which a session drains.
func DrainOf(d time.Duration) asterisque.Option {
	return asterisque.WithTimeouts(asterisque.Timeouts{Drain: d})
}
