package exchange_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
)

func TestAttackID_OtherIdentity(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	_, first := bridge(t, b, exchange.Config{Policy: everybody, Options: credentials("")})
	_, second := bridge(t, b, exchange.Config{Policy: everybody, Options: credentials("")})
	orders := join(t, being(first, "orders", "o"))
	p := callerOf(t, join(t, being(second, "shop", "s")), "orders")
	require.Equal(t, "o", ask(t, p))
	for _, identity := range []string{"rogue", ""} {
		cfg := being(second, identity, "o")
		cfg.Name = "orders"
		_, err := agent.Join(soon(t), cfg)
		require.ErrorIs(t, err, agent.ErrNameTaken)
	}
	members, err := orders.Members(soon(t), "orders")
	require.NoError(t, err)
	require.Len(t, members, 1)
	require.Equal(t, "orders", members[0].Identity)
	require.Equal(t, "o", ask(t, p))
}
