package kv

import (
	"fmt"

	"github.com/nats-io/nats.go/jetstream"
)

// Limit is a limit of a bucket or a stream, as required and as it is, in words.
type Limit struct{ what, want, have string }

// NewLimit returns a limit with its values in words.
func NewLimit(what string, want, have any) Limit {
	return Limit{what, fmt.Sprint(want), fmt.Sprint(have)}
}

// Differing returns the [*LimitError] of the first limit that differs, or nil.
func Differing(bucket string, limits ...Limit) error {
	for _, l := range limits {
		if l.want != l.have {
			return &LimitError{bucket, l.what, l.want, l.have}
		}
	}
	return nil
}

// StreamLimits returns the limits of a stream on which its nodes have to agree.
func StreamLimits(want, have jetstream.StreamConfig) []Limit {
	return []Limit{
		NewLimit("time to live", want.MaxAge, have.MaxAge),
		NewLimit("number of bytes", want.MaxBytes, have.MaxBytes),
		NewLimit("policy of discarding", want.Discard, have.Discard),
		NewLimit("number of replicas", want.Replicas, have.Replicas),
		NewLimit("storage", want.Storage, have.Storage),
	}
}

// leastValue returns the limit of the largest value, which may be larger than needed, or -1 for
// none.
func leastValue(need, have int32) Limit {
	if have == -1 || have >= need {
		need = have
	}
	l := NewLimit("largest value", need, have)
	if need != have {
		l.want += " or more"
	}
	return l
}

// OtherCluster returns the [ErrOtherCluster] for a bucket of another cluster.
func OtherCluster(bucket, other, this string) error {
	return fmt.Errorf("%w: it is that of the cluster %q, and this node is to join %q (bucket %s); set Config.Prefix, or Config.Cluster", ErrOtherCluster, other, this, bucket)
}
