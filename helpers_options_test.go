package asterisque_test

import (
	"context"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/limits"
)

func bytesOf(soft, hard int) limits.Limits {
	return limits.Limits{Soft: limits.Amount{Bytes: soft}, Hard: limits.Amount{Bytes: hard}}
}

func messages(soft, hard int) limits.Limits {
	return limits.Limits{Soft: limits.Amount{Messages: soft}, Hard: limits.Amount{Messages: hard}}
}

// noWindows leaves a session to its soft and hard limits alone.
func noWindows() []asterisque.Option {
	return []asterisque.Option{asterisque.WithLimits(asterisque.Limits{Window: -1})}
}

// littleRoom leaves room for some thirty small calls that wait.
func littleRoom() asterisque.Option {
	return asterisque.WithLimits(asterisque.Limits{Inbound: bytesOf(64<<10, 256<<10)})
}

// named lets each peer prove by its word who it is: its node's name is its Subject.
func named() asterisque.Option {
	return asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
		return &asterisque.Grant{Subject: p.ID}, nil
	}})
}
