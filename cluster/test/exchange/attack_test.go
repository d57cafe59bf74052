package exchange_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/cluster/internal/relayproto"
	"github.com/asterisque-go/asterisque/pool"
)

// hostile is a session with an exchange, with a hostile other side.
func hostile(t *testing.T, url string, accept func(context.Context, *asterisque.Pipe[relayproto.Answer, struct{}]) error) *asterisque.Session {
	t.Helper()
	svc := asterisque.NewService()
	relayproto.Accept.Handle(svc, func(ctx context.Context, _ relayproto.Visitor, p *asterisque.Pipe[relayproto.Answer, struct{}]) (none struct{}, err error) {
		return none, accept(ctx, p)
	})
	node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithLogger(silent))
	t.Cleanup(func() { node.Close() })
	s, err := node.Dial(soon(t), url)
	require.NoError(t, err)
	return s
}

// never does not answer.
func never(ctx context.Context, _ *asterisque.Pipe[relayproto.Answer, struct{}]) error {
	<-ctx.Done()
	return ctx.Err()
}

// taken accepts every session, and ignores its data.
func taken(ctx context.Context, p *asterisque.Pipe[relayproto.Answer, struct{}]) error {
	if err := p.Send(ctx, relayproto.Answer{}); err != nil {
		return err
	}
	return never(ctx, p)
}

// register registers a node without an agent.
func register(t *testing.T, s *asterisque.Session, name, id string) error {
	t.Helper()
	m := relayproto.Member{Name: name, ID: id, Instance: "i", State: relayproto.Present}
	call, err := relayproto.Register.Open(t.Context(), s, relayproto.Registration{Member: m})
	require.NoError(t, err)
	_, err = call.Recv(soon(t))
	return err
}

// dial dials a node without an agent.
func dial(t *testing.T, s *asterisque.Session, name, id string) (*asterisque.StreamCall[struct{}, relayproto.Answer, struct{}], error) {
	t.Helper()
	call, err := relayproto.Dial.Open(t.Context(), s, relayproto.Target{Name: name, ID: id})
	require.NoError(t, err)
	_, err = call.Recv(soon(t))
	return call, err
}

func TestAttackRegister_SecondNode(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "n", "i"))
	require.ErrorIs(t, register(t, s, "n", "j"), relayproto.ErrBadRegistration)
	require.Equal(t, 1, x.Stats().Nodes)
	for _, name := range []string{"", "a b", "a.b", "*"} {
		require.ErrorIs(t, register(t, hostile(t, url, never), name, "*"), relayproto.ErrBadRegistration)
	}
}

func TestAttackRegister_Unregistered(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	joined(t, url, "orders", "b")
	s := hostile(t, url, never)
	_, err := dial(t, s, "orders", "b")
	require.ErrorIs(t, err, relayproto.ErrUnregistered)
	call, err := relayproto.Members.Open(t.Context(), s, "orders")
	require.NoError(t, err)
	_, err = call.Recv(soon(t))
	require.ErrorIs(t, err, relayproto.ErrUnregistered)
}

func TestAttackRelay_SessionLimit(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody, PerNode: 3, Sessions: 4})
	joined(t, url, "orders", "b")
	joined(t, url, "stock", "c")
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	for range 3 {
		_, err := dial(t, s, "orders", "b")
		require.NoError(t, err)
	}
	for range 100 {
		_, err := dial(t, s, "stock", "c")
		require.ErrorIs(t, err, asterisque.ErrOverloaded)
		require.True(t, asterisque.Repeatable(err))
		require.ErrorContains(t, err, "this node has 3 relayed sessions")
	}
	other := hostile(t, url, never)
	require.NoError(t, register(t, other, "", "j"))
	_, err := dial(t, other, "orders", "b")
	require.ErrorContains(t, err, "the node orders b has 3 relayed sessions")
	_, err = dial(t, other, "stock", "c")
	require.NoError(t, err)
	_, err = dial(t, other, "stock", "c")
	require.ErrorContains(t, err, "the exchange relays 4 sessions")
	s.Close()
	require.Eventually(t, func() bool { return x.Stats().Sessions == 1 }, enough, time.Millisecond)
}

func TestAttackMembers_NameLimit(t *testing.T) {
	t.Parallel()
	_, url := started(t, exchange.Config{Policy: everybody})
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	for i := range 70 {
		call, err := relayproto.Members.Open(t.Context(), s, fmt.Sprint("n", i))
		require.NoError(t, err)
		_, err = call.Recv(soon(t))
		if i < 64 {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, asterisque.ErrOverloaded)
		}
	}
}

func TestAttackDial_NoAnswer(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody, Answer: 100 * time.Millisecond})
	require.NoError(t, register(t, hostile(t, url, never), "orders", "b"))
	p := callerOf(t, joined(t, url, "", "a"), "orders")
	require.Eventually(t, func() bool {
		_, err := whoami.Call(soon(t), p, struct{}{}, asterisque.WithFailFast())
		outage := outageOf(p)
		return err != nil && outage != nil && outage.Why != nil
	}, enough, time.Millisecond)
	require.ErrorContains(t, outageOf(p).Why, "the node orders b does not take the session")
	joined(t, url, "orders", "good")
	require.Equal(t, "good", ask(t, p))
	require.NoError(t, p.Close())
	require.Eventually(t, func() bool { return x.Stats().Sessions == 0 }, enough, time.Millisecond)
}

// outageOf returns the outage of the first server of a Pool.
func outageOf(p *pool.Pool) *asterisque.NotConnectedError {
	for _, s := range p.Servers() {
		return s.Outage
	}
	return nil
}

func TestAttackRelay_Garbage(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	b := joined(t, url, "orders", "b")
	p := callerOf(t, joined(t, url, "", "a"), "orders")
	require.Equal(t, "b", ask(t, p))
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	for _, garbage := range [][]byte{
		{0xff, 0xff, 0xff, 0xff},              // a frame of 4 GiB
		{0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o'}, // a frame that is no message
		{0, 0, 0, 0},
	} {
		call, err := dial(t, s, "orders", "b")
		require.NoError(t, err)
		require.NoError(t, call.Untyped().Send(soon(t), garbage))
		<-call.Untyped().Done()
	}
	require.Equal(t, "b", ask(t, p))
	require.NoError(t, b.Err())
	require.Eventually(t, func() bool { return x.Stats().Sessions == 1 }, enough, time.Millisecond)
}

func TestAttackRelay_UnreadFrames(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody})
	far := hostile(t, url, taken)
	require.NoError(t, register(t, far, "orders", "b"))
	near := hostile(t, url, never)
	require.NoError(t, register(t, near, "", "a"))
	var sent atomic.Int64
	frame := append([]byte{0, 0, 0x40, 0}, make([]byte, 16<<10)...)
	for range 4 {
		call, err := dial(t, near, "orders", "b")
		require.NoError(t, err)
		go func() { // ends with the call
			for call.Untyped().Send(t.Context(), frame) == nil {
				sent.Add(int64(len(frame)))
			}
		}()
	}
	stands(t, &sent)
	require.Less(t, sent.Load(), int64(mostHeld))
	require.Less(t, x.Stats().Node.Held, mostHeld)
	joined(t, url, "stock", "c")
	require.Equal(t, "c", ask(t, callerOf(t, joined(t, url, "", "d"), "stock")))
}

func TestAttackJoin_SilentExchange(t *testing.T) {
	t.Parallel()
	mute := asterisque.NewNode(asterisque.WithLogger(silent)) // it has no functions
	over := make(chan error, 1)
	url := "mem://mute-exchange"
	life, end := context.WithCancel(t.Context())
	go func() { over <- mute.ListenAndServe(life, url) }() // ends with life
	t.Cleanup(func() { mute.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Second/2) // there is no answer
	defer cancel()
	_, err := agent.Join(ctx, agent.Config{Exchange: []string{url}, Name: "a"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	end()
	require.NoError(t, <-over)
}

func TestAttackShutdown_SessionStays(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{Policy: everybody, Options: []asterisque.Option{
		asterisque.WithTimeouts(asterisque.Timeouts{Drain: 200 * time.Millisecond}),
	}})
	require.NoError(t, register(t, hostile(t, url, taken), "orders", "b"))
	near := hostile(t, url, never)
	require.NoError(t, register(t, near, "", "a"))
	_, err := dial(t, near, "orders", "b")
	require.NoError(t, err)
	require.ErrorIs(t, x.Shutdown(soon(t)), asterisque.ErrUnavailable, "it was cut")
	require.Zero(t, x.Stats().Sessions)
}

// A node dials and does not read the answer.
func TestAttackDial_UnreadAnswer(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	x, url := bridge(t, b, exchange.Config{Policy: everybody})
	inCluster(t, b, cluster.Config{Name: "stock", ID: "c", Service: service("c", nil)})
	joined(t, url, "orders", "b")
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "", "i"))
	_, err := dial(t, s, "stock", "c")
	require.NoError(t, err)
	before := b.Server().NumSubscriptions()
	for range 20 {
		for _, to := range []relayproto.Target{{Name: "stock", ID: "c"}, {Name: "orders", ID: "b"}} {
			call, err := relayproto.Dial.Open(t.Context(), s, to)
			require.NoError(t, err)
			call.Untyped().Stop()
			call.CloseSend() // in case the answer was faster; otherwise it is an error
			call.Result(soon(t))
		}
	}
	require.Eventually(t, func() bool { return x.Stats().Sessions <= 1 }, enough, time.Millisecond)
	require.Eventually(t, func() bool { return b.Server().NumSubscriptions() <= before }, enough, time.Millisecond)
}

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

func TestAttackPolicy_ForbiddenMembers(t *testing.T) {
	t.Parallel()
	x, url := started(t, exchange.Config{})
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "spy", "i"))
	call, err := relayproto.Members.Open(t.Context(), s, "orders")
	require.NoError(t, err)
	c, err := call.Recv(soon(t))
	require.NoError(t, err)
	require.True(t, c.All)
	told := make(chan error, 1)
	go func() { // ends with the call
		_, err := call.Recv(t.Context())
		told <- err
	}()
	for range 5 {
		require.NoError(t, joined(t, url, "orders", "b").Close())
		require.Eventually(t, func() bool { return x.Stats().Nodes == 1 }, enough, time.Millisecond)
	}
	require.NoError(t, x.Close())
	require.Error(t, <-told, "no change was sent before the end")
}

func TestAttackPolicy_NATSOutage(t *testing.T) {
	t.Parallel()
	b := natsServer(t)
	_, url := bridge(t, b, exchange.Config{})
	joined(t, url, "orders", "b")
	s := hostile(t, url, never)
	require.NoError(t, register(t, s, "spy", "i"))
	b.Close()
	for _, name := range []string{"orders", "nobody"} {
		call, err := relayproto.Dial.Open(t.Context(), s, relayproto.Target{Name: name, ID: "b"}, asterisque.WithTTL(time.Second/2))
		require.NoError(t, err)
		_, err = call.Recv(soon(t))
		require.ErrorIs(t, err, asterisque.ErrExpired, name)
	}
}
