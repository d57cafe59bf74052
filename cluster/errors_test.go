package cluster_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
)

func TestLostError_Text(t *testing.T) {
	t.Parallel()
	lost := &cluster.LostError{Key: "k", Epoch: 7}
	require.NotErrorIs(t, lost, context.Canceled)
	require.EqualError(t, lost, `cluster: the claim is lost: "k" with epoch 7; stop the work that needs it, and claim it again to continue`)
	lost.Cause = errors.New("its lease ran out")
	require.ErrorContains(t, lost, "7: its lease ran out;")
	lost.Holder, lost.HolderEpoch = "b", 8
	require.ErrorContains(t, lost, `7: the node "b" holds it with epoch 8;`)
}
