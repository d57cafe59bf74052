package cluster

import (
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
)

// checkedLimit is a limit of a bucket or a stream, as required and as it is, in words.
type checkedLimit struct{ what, want, have string }

// differing returns the error of the first limit that differs, or nil.
func differing(bucket string, limits ...checkedLimit) error {
	for _, l := range limits {
		if l.want != l.have {
			return &BucketError{bucket, l.what, l.want, l.have}
		}
	}
	return nil
}

// limitsOf returns the limits of a stream on which its nodes have to agree.
func limitsOf(want, have jetstream.StreamConfig) []checkedLimit {
	return []checkedLimit{
		{"time to live", want.MaxAge.String(), have.MaxAge.String()},
		{"number of bytes", number(want.MaxBytes), number(have.MaxBytes)},
		{"policy of discarding", want.Discard.String(), have.Discard.String()},
		{"number of replicas", number(want.Replicas), number(have.Replicas)},
	}
}

func number[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// atLeast returns the required text for a limit that may be larger, or -1 for none.
func atLeast(need, have int64) string {
	if have == -1 || have >= need {
		return number(have)
	}
	return number(need) + " or more"
}
