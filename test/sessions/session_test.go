package sessions

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// The end of a session wakes all waiting goroutines.
func TestSession_EndWakesAll(t *testing.T) {
	for name, end := range map[string]func(dialled, accepted *asterisque.Session){
		"closed by the caller": func(d, _ *asterisque.Session) { d.Close() },
		"closed by the callee": func(_, a *asterisque.Session) { a.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			svc, started, ended := testkit.BlockService()
			dialled, accepted := testkit.Connect(t, svc)
			errs := make(chan error)
			go func() { _, err := testkit.Block.Call(testkit.Background, dialled, ""); errs <- err }()
			go func() {
				p, err := dialled.Open(testkit.Background, testkit.Block.Number(), []byte{0x60})
				if err == nil {
					_, err = p.Result(testkit.Background)
				}
				errs <- err
			}()
			<-started
			<-started
			end(dialled, accepted)
			for range 2 {
				err := <-errs
				require.ErrorIs(t, err, asterisque.ErrSessionClosed)
				require.False(t, asterisque.Repeatable(err), "the call may have run")
				require.Equal(t, context.Canceled, <-ended, "the handler's context ends")
			}
			<-dialled.Done()
			<-accepted.Done()
			require.ErrorIs(t, dialled.Err(), asterisque.ErrSessionClosed)
			require.ErrorIs(t, accepted.Err(), asterisque.ErrSessionClosed)
			_, err := testkit.Block.Call(testkit.Background, dialled, "")
			require.ErrorIs(t, err, asterisque.ErrSessionClosed)
			require.True(t, asterisque.Repeatable(err), "this one was never sent")
			require.ErrorIs(t, dialled.Flush(testkit.Background), asterisque.ErrSessionClosed)
		})
	}
}

// Shutdown completes running calls, and refuses new ones.
func TestShutdown_RunningAndNew(t *testing.T) {
	started, finish := make(chan struct{}), make(chan struct{})
	slow := asterisque.Func[string, string](40, "slow")
	svc := testkit.EchoService()
	slow.Handle(svc, func(context.Context, string) (string, error) {
		close(started)
		<-finish
		return "finished", nil
	})
	dialled, accepted := testkit.Connect(t, svc, asterisque.WithService(svc))
	answer := make(chan string, 1)
	go func() {
		got, err := slow.Call(testkit.Background, dialled, "")
		if err != nil {
			got = err.Error()
		}
		answer <- got
	}()
	<-started
	down := make(chan error)
	go func() { down <- accepted.Shutdown(testkit.Background) }()

	var err error
	for err == nil { // until the peer's Drain has arrived
		_, err = testkit.Echo.Call(testkit.Background, dialled, "")
	}
	require.ErrorIs(t, err, asterisque.ErrUnavailable)
	require.True(t, asterisque.Repeatable(err))
	_, err = testkit.Echo.Call(testkit.Background, accepted, "")
	require.ErrorIs(t, err, asterisque.ErrUnavailable, "the side that shuts down opens nothing new either")

	close(finish)
	require.Equal(t, "finished", <-answer)
	require.NoError(t, <-down)
	<-dialled.Done()
	require.ErrorIs(t, dialled.Err(), asterisque.ErrSessionClosed)
}

// Shutdown loses no answer that is about to be sent.
func TestShutdown_PendingAnswer(t *testing.T) {
	for range 1000 {
		started, finish := make(chan struct{}), make(chan struct{})
		svc := asterisque.NewService()
		f := asterisque.Func[string, string](1, "finish")
		f.Handle(svc, func(context.Context, string) (string, error) { close(started); <-finish; return "", nil })
		dialled, accepted := testkit.Connect(t, svc)
		answer := make(chan error)
		go func() { _, err := f.Call(testkit.Background, dialled, ""); answer <- err }()
		<-started
		go close(finish)
		require.NoError(t, accepted.Shutdown(testkit.Background))
		require.NoError(t, <-answer)
		dialled.Close()
	}
}

// Shutdown closes when its context ends.
func TestShutdown_ContextEnds(t *testing.T) {
	svc, started, ended := testkit.BlockService()
	dialled, accepted := testkit.Connect(t, svc)
	errs := make(chan error)
	go func() { _, err := testkit.Block.Call(testkit.Background, dialled, ""); errs <- err }()
	<-started
	ctx, cancel := context.WithTimeout(testkit.Background, 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, accepted.Shutdown(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, <-errs, asterisque.ErrSessionClosed)
	<-ended
}

// Flush returns when all sent frames are given to the wire.
func TestFlush_GivenToWire(t *testing.T) {
	dialled, _ := testkit.Connect(t, testkit.SumService())
	require.NoError(t, dialled.Flush(testkit.Background), "nothing to wait for")
	call, err := testkit.Sums.Open(testkit.Background, dialled, testkit.Window{N: 1})
	require.NoError(t, err)
	require.NoError(t, call.Send(testkit.Background, 1))
	require.NoError(t, dialled.Flush(testkit.Background))
	call.Abort(nil)
}

// The Accept callback chooses the service of each peer.
func TestAccept_ChoosesService(t *testing.T) {
	vip, other := testkit.EchoService(), asterisque.NewService()
	seen := make(chan asterisque.Peer, 3)
	there := asterisque.NewNode(asterisque.WithID("server"), asterisque.WithService(other),
		asterisque.WithAccess(asterisque.Access{Accept: func(_ context.Context, p asterisque.Peer) (*asterisque.Grant, error) {
			seen <- p
			switch p.ID {
			case "vip":
				return &asterisque.Grant{Service: vip}, nil
			case "enemy":
				return nil, errors.New("not you")
			}
			return nil, nil
		}}))
	t.Cleanup(func() { there.Close() })

	for id, want := range map[string]error{"vip": nil, "guest": asterisque.ErrNoFunction} {
		here := asterisque.NewNode(asterisque.WithID(id))
		t.Cleanup(func() { here.Close() })
		dialled, accepted := testkit.ConnectNodes(t, here, there)
		_, err := testkit.Echo.Call(testkit.Background, dialled, "")
		require.ErrorIs(t, err, want)
		p := <-seen
		require.Equal(t, id, p.ID)
		require.Equal(t, dialled.Peer().LocalAddr.String(), p.RemoteAddr.String())
		require.Nil(t, p.TLS)
		require.Equal(t, "server", dialled.Peer().ID)
		require.Equal(t, dialled.ID(), accepted.ID(), "both sides call the session the same")
		require.Contains(t, there.Sessions(), accepted)
	}
}

// A node that is closed ends its sessions, and makes no new ones.
func TestNode_CloseEndsSessions(t *testing.T) {
	here, there := asterisque.NewNode(), asterisque.NewNode()
	dialled, accepted := testkit.ConnectNodes(t, here, there)
	require.NoError(t, here.Close())
	<-dialled.Done()
	<-accepted.Done()
	require.Empty(t, here.Sessions())
	require.NoError(t, there.Shutdown(testkit.Background))
	require.NoError(t, there.Close())
}

// One worker runs calls in order.
func TestWorkers_OneInOrder(t *testing.T) {
	var mu sync.Mutex
	var order []int
	running := 0
	note := asterisque.Func[int, int](41, "note")
	svc := asterisque.NewService()
	note.Handle(svc, func(_ context.Context, n int) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		running++
		order = append(order, n)
		running--
		return running, nil
	})
	dialled, _ := testkit.Connect(t, svc, asterisque.WithWorkers(asterisque.Workers{Session: 1}))
	var pipes []interface {
		Result(context.Context) ([]byte, error)
	}
	for i := range 200 {
		b, err := codec.CBOR.Append(nil, i)
		require.NoError(t, err)
		p, err := dialled.Open(testkit.Background, note.Number(), b)
		require.NoError(t, err)
		pipes = append(pipes, p)
	}
	for _, p := range pipes {
		_, err := p.Result(testkit.Background)
		require.NoError(t, err)
	}
	for i, n := range order {
		require.Equal(t, i, n)
	}
	require.Len(t, order, 200)
}
