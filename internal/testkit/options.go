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

// NoWindows leaves a session to its soft and hard limits alone.
func NoWindows() []asterisque.Option {
	return []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Window: -1})}
}

// LittleRoom leaves room for some thirty small calls that wait.
func LittleRoom() asterisque.Option {
	return asterisque.WithLimits(asterisque.Limits{Inbound: BytesOf(64<<10, 256<<10)})
}

// Named lets each peer prove by its word who it is: its node's name is its Subject.
func Named() asterisque.Option {
	return asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: p.ID}, nil
	}})
}

// DrainOf bounds how long a session drains.
func DrainOf(d time.Duration) asterisque.Option {
	return asterisque.WithTimeouts(asterisque.Timeouts{Drain: d})
}
