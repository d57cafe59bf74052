package exchange_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/internal/relayproto"
)

func TestAttackRegister_Repeated(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "n", "i"))
	var flood sync.WaitGroup
	for from := range 16 {
		flood.Go(func() {
			for i := range 1000 / 16 {
				m := relayproto.Member{Name: fmt.Sprint("n", from, "-", i), ID: "i", Instance: "i", State: relayproto.Present}
				call, err := relayproto.Register.Open(t.Context(), s, relayproto.Registration{Member: m})
				if err == nil {
					_, err = call.Recv(t.Context())
				}
				if !errors.Is(err, relayproto.ErrBadRegistration) {
					t.Error(err)
					return
				}
			}
		})
	}
	flood.Wait()
	require.Equal(t, 1, x.Stats().Nodes)
	require.Equal(t, 1, x.Stats().Names)
	joined(t, url, "orders", "b")
	require.Equal(t, "b", ask(t, callerOf(t, joined(t, url, "", "a"), "orders")))
}

func TestAttackRegister_ManyNodes(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody, Options: []asterisque.Option{
		asterisque.WithAdmission(asterisque.Admission{Sessions: 10}),
	}})
	node := asterisque.NewNode(asterisque.WithLogger(silent))
	t.Cleanup(func() { node.Close() })
	refused := 0
	for i := range 200 {
		s, err := node.Dial(soon(t), url)
		if err == nil {
			err = register(t, s, fmt.Sprint("n", i), "i")
		}
		if err != nil {
			require.ErrorIs(t, err, asterisque.ErrOverloaded)
			refused++
		}
	}
	require.Equal(t, 190, refused)
	require.Equal(t, 10, x.Stats().Nodes)
}
