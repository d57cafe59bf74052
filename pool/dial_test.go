package pool_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

func TestConfig_Dial(t *testing.T) {
	where := map[string]string{"server a": newServer(t, "a").url, "server b": newServer(t, "b").url}
	set := []pool.Address{{URL: "server a"}, {URL: "server b"}}
	p := newPoolOf(t, yielding(set), pool.Config{Dial: func(ctx context.Context, a pool.Address) (wire.Wire, error) {
		return wire.Dial(ctx, where[a.URL], wire.Options{})
	}})
	ready(t, p, 2)
	name, err := whoami.Call(t.Context(), p.At("server b"), 0)
	require.NoError(t, err)
	require.Equal(t, "b", name)
}

func TestDial_ServerNames(t *testing.T) {
	dial := func(context.Context, pool.Address) (wire.Wire, error) { return nil, context.Canceled }
	node := asterisque.NewNode()
	defer node.Close()
	for name, c := range map[string]struct {
		set  []pool.Address
		want string
	}{
		"twice": {[]pool.Address{{URL: "a"}, {URL: "a"}}, "the server a is in the set twice"},
		"empty": {[]pool.Address{{}}, "the address of a server cannot be used"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pool.New(t.Context(), node, yielding(c.set), pool.Config{Dial: dial})
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestDial_OtherID(t *testing.T) {
	t.Parallel()
	s := newServer(t, "a", asterisque.WithID("a"))
	for id, want := range map[string]error{"a": nil, "b": asterisque.ErrExpired} {
		p := newPoolOf(t, yielding([]pool.Address{{URL: s.url, ID: id}}), pool.Config{})
		_, err := whoami.Call(t.Context(), p, 0, asterisque.WithTTL(200*time.Millisecond))
		if want == nil {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, want)
		require.ErrorContains(t, err, `calls itself "a", and not "b"`)
	}
}
