package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/tunnel"
	"github.com/asterisque-go/asterisque/wire"
)

func TestAttackRelay_SlowHandshake(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	joined(t, url, "orders", "b", asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 200 * time.Millisecond}))
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	for _, begun := range [][]byte{nil, {0, 0}, {0, 0, 0, 5, 'h'}} {
		call, err := dial(t, s, "orders", "b")
		require.NoError(t, err)
		if begun != nil {
			require.NoError(t, call.Untyped().Send(soon(t), begun))
		}
		<-call.Untyped().Done()
	}
	require.Eventually(t, func() bool { return x.Stats().Sessions == 0 }, enough, time.Millisecond)
	require.Equal(t, "b", ask(t, callerOf(t, joined(t, url, "", "a"), "orders")))
}

// A node dials itself each time that it is dialled, alternately through two exchanges.
func TestAttackRelay_Circles(t *testing.T) {
	t.Parallel()
	const most = 20
	b := natsServer(t)
	x, first := bridge(t, b, exchange.Config{Policy: everybody, PerNode: most})
	y, second := bridge(t, b, exchange.Config{Policy: everybody, PerNode: most})
	var here, there *asterisque.Session
	var circles atomic.Int64
	onward := func(on **asterisque.Session, id string) func(context.Context, *asterisque.Pipe[relayproto.Answer, struct{}]) error {
		return func(ctx context.Context, p *asterisque.Pipe[relayproto.Answer, struct{}]) error {
			circles.Add(1)
			relayproto.Dial.Open(ctx, *on, relayproto.Target{Name: "circle", ID: id})
			return taken(ctx, p)
		}
	}
	here = hostile(t, first, onward(&there, "x"))
	there = hostile(t, second, onward(&here, "y"))
	require.NoError(t, register(t, here, "circle", "x"))
	require.NoError(t, register(t, there, "circle", "y"))
	for range 5 {
		relayproto.Dial.Open(t.Context(), here, relayproto.Target{Name: "circle", ID: "y"})
		relayproto.Dial.Open(t.Context(), here, relayproto.Target{Name: "circle", ID: "x"})
	}
	stands(t, &circles)
	for _, e := range []*exchange.Exchange{x, y} {
		require.LessOrEqual(t, e.Stats().Sessions, 2*most)
	}
	joined(t, first, "orders", "o")
	require.Equal(t, "o", ask(t, callerOf(t, joined(t, second, "", "a"), "orders")), "other nodes are served")
	here.Close()
	there.Close()
	require.Eventually(t, func() bool { return x.Stats().Sessions <= 1 && y.Stats().Sessions <= 1 }, enough, time.Millisecond)
}

func TestAttackRelay_NodeReadsNothing(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	mute := hostile(t, url, taken)
	require.NoError(t, register(t, mute, "mute", "m"))
	near := hostile(t, url, never)
	require.NoError(t, register(t, near, "", "a"))
	frame := append([]byte{0, 0, 0x40, 0}, make([]byte, 16<<10)...)
	var sent atomic.Int64
	var calls []*asterisque.StreamCall[struct{}, relayproto.Answer, struct{}]
	for range 4 {
		call, err := dial(t, near, "mute", "m")
		require.NoError(t, err)
		calls = append(calls, call)
	}
	mute.StopReading() // from now on its connection is not read
	for _, call := range calls {
		go func() { // ends with the call
			for call.Untyped().Send(t.Context(), frame) == nil {
				sent.Add(int64(len(frame)))
			}
		}()
	}
	stands(t, &sent)
	require.Less(t, x.Stats().Node.Held, mostHeld)
	joined(t, url, "orders", "b")
	require.Equal(t, "b", ask(t, callerOf(t, joined(t, url, "", "c"), "orders")))
	call, err := dial(t, near, "orders", "b")
	require.NoError(t, err, "the sender is held up on these alone")
	call.Abort(nil)
}

// A node knows the session of another node, but has another secret.
func TestAttackRelay_ForeignSession(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	b := joined(t, url, "orders", "b", resume)
	p := callerOf(t, joined(t, url, "shop", "a", resume), "orders")
	call := running(t, p)
	theirs := b.Node().Sessions()[0]
	id := theirs.ID()
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	for _, secret := range [][]byte{make([]byte, message.SecretSize), nil} {
		dialled, err := dial(t, s, "orders", "b")
		require.NoError(t, err)
		w := wire.FromConn(tunnel.NewConn(dialled.Untyped(), s))
		require.NoError(t, w.WriteFrames([][]byte{message.Sync{
			Version: message.Version, Node: []byte("a"), Session: id[:], Secret: secret, Features: message.FeatureResume,
			MaxMessage: 1 << 16, Codecs: []string{"cbor"},
		}.AppendTo(nil)}))
		frame, err := w.ReadFrame(1 << 16)
		if err == nil {
			c, err := message.ParseControl(frame)
			require.NoError(t, err)
			if sync, ok := c.(message.Sync); ok {
				require.NotEqual(t, id[:], sync.Session, "it has got another one at most")
			}
		}
		w.Close()
	}
	require.NoError(t, theirs.Err())
	require.False(t, theirs.Away())
	require.NoError(t, call.Untyped().Err())
	require.Equal(t, "b", ask(t, p))
	call.Abort(nil)
}

// The error of a relay that ends below a Pool after the loss of its node names the cause.
func TestRelay_FarEndGone(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	far := hostile(t, url, taken)
	require.NoError(t, register(t, far, "orders", "b"))
	near := hostile(t, url, never)
	require.NoError(t, register(t, near, "", "a"))
	call, err := dial(t, near, "orders", "b")
	require.NoError(t, err)
	far.Close()
	_, err = call.Result(soon(t))
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.ErrorContains(t, err, "the node orders b is gone")
	_, err = dial(t, near, "orders", "b")
	require.ErrorIs(t, err, relayproto.ErrNoMember)
	a := join(t, agent.Config{Exchange: []string{url}, Name: "shop", ID: "s"})
	_, err = whoami.Call(soon(t), callerOf(t, a, "orders"), struct{}{}, asterisque.WithFailFast())
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
}

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
