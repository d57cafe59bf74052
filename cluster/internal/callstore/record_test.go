package callstore

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
)

func TestDurableRecord_HidesKey(t *testing.T) {
	t.Parallel()
	d := &Registry{}
	require.Regexp(t, "^[0-9a-f]{64}$", d.callOf("subject alice", []byte("order 1"), 20, nil).name)
	require.NotEqual(t, d.callOf("a", []byte("bc"), 20, nil).name, d.callOf("ab", []byte("c"), 20, nil).name)
	require.NotEqual(t, d.callOf("", []byte("k"), 20, []byte("1")).digest, d.callOf("", []byte("k"), 20, []byte("2")).digest)
}

func TestDurableRecord_RoundTrip(t *testing.T) {
	t.Parallel()
	runs := &record{Version: recordVersion, State: stateRuns, Node: "a", Instance: "i", Run: "r", Function: 20, Digest: "d", Lease: 1000}
	abort := &asterisque.Abort{Code: codec.Failed, Message: "two\nlines", Detail: []byte("{\n}")}
	for _, r := range []*record{runs, runs.answered([]byte("a\nb"), nil), runs.answered(nil, abort), runs.with(stateLost)} {
		b, err := r.encode()
		require.NoError(t, err)
		got, unread := decode(b)
		require.Nil(t, unread)
		again, err := got.encode()
		require.NoError(t, err)
		require.Equal(t, b, again)
		require.Equal(t, r.State, got.State)
	}
}

func TestDurableRecord_SameSize(t *testing.T) {
	t.Parallel()
	runs := &record{Version: recordVersion, State: stateRuns, Run: "r", Lease: 1000}
	size := func(r *record, revision uint64) int {
		b, err := r.encode()
		require.NoError(t, err)
		return len(b) + len(r.padding(revision)) + len(strconv.FormatUint(revision, 10))
	}
	for _, revision := range []uint64{0, 10, math.MaxUint64} {
		for _, s := range []state{stateRuns, stateUnkept, stateLost} {
			require.Equal(t, size(runs, 0), size(runs.answered([]byte("answer"), nil).with(s), revision), s)
		}
	}
}

func TestAttackDurable_LongLease(t *testing.T) {
	t.Parallel()
	r := record{Lease: (365 * 24 * time.Hour).Milliseconds()}
	require.Equal(t, LongestLease, r.lease())
	r.Lease = 1 << 62
	require.Equal(t, LongestLease, r.lease())
}
