package cluster_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
)

func TestDurableConfig_Errors(t *testing.T) {
	t.Parallel()
	for text, d := range map[string]cluster.Durable{
		"Durable.Lease is 1ms":    {Lease: 1e6},
		"Durable.Remember is 1s":  {Remember: 1e9},
		"Durable.Calls is -1":     {Calls: -1},
		"Durable.Bytes is 5":      {Bytes: 5},
		"Durable.Share is 1.5":    {Share: 1.5},
		"Config.Durable is set":   {},
		"Durable.Lease is 1h0m0s": {Lease: 3600e9},
	} {
		_, err := cluster.Join(context.Background(), cluster.Config{Durable: &d})
		require.ErrorContains(t, err, text)
	}
}
