package exchange_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
)

func TestAttackSquat_InCluster(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	x, url := bridge(t, b, exchange.Config{Policy: everybody, Options: credentials("")})
	for _, id := range []string{"o", "r"} {
		for range 3 {
			cfg := being(url, "", "r")
			cfg.Name = "orders"
			squatter := join(t, cfg)
			orders := join(t, being(url, "orders", id))
			<-squatter.Done()
			require.ErrorIs(t, squatter.Err(), agent.ErrNameTaken)
			require.NoError(t, orders.Close())
			require.Eventually(t, func() bool { return x.Stats().Nodes == 0 }, enough, time.Millisecond)
		}
	}
}
