package sessions

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// oddWire is a Wire one method of which misbehaves.
type oddWire struct {
	wire.Wire
	at  string
	how func()
}

func (w oddWire) hook(at string) {
	if at == w.at {
		w.how()
	}
}

func (w oddWire) LocalAddr() net.Addr { w.hook("LocalAddr"); return w.Wire.LocalAddr() }
func (w oddWire) Private() bool       { w.hook("Private"); return true }
func (w oddWire) Close() error        { err := w.Wire.Close(); w.hook("Close"); return err }

func (w oddWire) Progress() (received, sent uint64) { w.hook("Progress"); return 0, 0 }
func (w oddWire) Receiving() int                    { w.hook("Receiving"); return 0 }

func (w oddWire) RemoteAddr() net.Addr {
	w.hook("RemoteAddr")
	if w.at == "no address" {
		return nil
	}
	return oddAddr{w}
}

// oddAddr is the address of an oddWire.
type oddAddr struct{ oddWire }

func (a oddAddr) Network() string { a.hook("Network"); return "odd" }
func (a oddAddr) String() string  { a.hook("String"); return "somewhere" }

// oddForeignWire is an oddWire to a peer of another protocol.
type oddForeignWire struct{ oddWire }

func (w oddForeignWire) MaxBlock() int { w.hook("MaxBlock"); return 1000 }

// odd returns w with one method that misbehaves.
func odd(w wire.Wire, at string, how func()) wire.Wire {
	o := oddWire{w, at, how}
	if at == "MaxBlock" {
		return oddForeignWire{o}
	}
	return o
}

// oddPlaces are the methods of an oddWire that may misbehave.
var oddPlaces = []string{"LocalAddr", "RemoteAddr", "no address", "Network", "String", "MaxBlock", "Private", "Close", "Progress", "Receiving"}

// TestWire_Panics plays both sides over such wires, with all features that call their methods.
// Another session continues.
func TestWire_Panics(t *testing.T) {
	t.Parallel()
	for _, at := range oddPlaces {
		for how, f := range map[string]func(){"panics": func() { panic("odd") }, "exits": runtime.Goexit} {
			t.Run(at+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { playOdd(t, at, f) })
			})
		}
	}
}

// playOdd tests both sides over wires that call f in one method.
func playOdd(t *testing.T, at string, f func()) {
	var asked atomic.Int64
	odd := func(w wire.Wire) wire.Wire { return odd(w, at, func() { asked.Add(1); f() }) }
	opts := []asterisque.Option{asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}),
		asterisque.WithTimeouts(asterisque.Timeouts{Ping: 16 * time.Millisecond, Silence: 200 * time.Millisecond})}
	here, there := testkit.NewNode(t, opts...), testkit.NewNode(t, opts...)
	a, b := wire.Pipe()
	go there.Accept(testkit.Background, b)
	good, err := here.Attach(testkit.Background, a)
	require.NoError(t, err)

	a, b = wire.Pipe()
	go there.Attach(testkit.Background, b)
	inGoroutine(func() { here.Accept(testkit.Background, odd(a)) })
	a, b = wire.Pipe()
	go there.Accept(testkit.Background, b)
	inGoroutine(func() { here.Attach(testkit.Background, odd(a)) })

	ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
	defer cancel()
	inGoroutine(func() {
		conn, err := here.Connect(ctx, "", asterisque.ReconnectConfig{First: time.Millisecond, Dial: func(context.Context) (wire.Wire, error) {
			a, b := wire.Pipe()
			go there.Accept(testkit.Background, b)
			return odd(a), nil
		}})
		if err == nil {
			<-ctx.Done()
			conn.Close()
		}
	})

	got, err := testkit.Echo.Call(testkit.Background, good, "goes on")
	require.NoError(t, err)
	require.Equal(t, "goes on", got)
	require.Equal(t, at != "no address", asked.Load() > 0)
}

// inGoroutine calls f on a goroutine of its own, which f may end, and waits for its end.
func inGoroutine(f func()) {
	over := make(chan struct{})
	go func() {
		defer close(over)
		f()
	}()
	<-over
}

// oddListener misbehaves in Close.
type oddListener struct{ wire.Listener }

func (l oddListener) Close() error { l.Listener.Close(); panic("odd") }

// A Listener that panics in Close is survived.
func TestListener_PanickingClose(t *testing.T) {
	ln, err := wire.Listen(testkit.Background, "mem://odd-listener", wire.Options{})
	require.NoError(t, err)
	node := asterisque.NewNode()
	defer node.Close()
	ctx, cancel := context.WithCancel(testkit.Background)
	cancel()
	require.NoError(t, node.Serve(ctx, oddListener{ln}))
}

// A Dial that returns nothing is an error.
func TestDial_NilResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		defer node.Close()
		_, err := node.Connect(testkit.Background, "", asterisque.ReconnectConfig{First: time.Millisecond, MaxOutage: 500 * time.Millisecond,
			Dial: func(context.Context) (wire.Wire, error) { return nil, nil }})
		require.ErrorContains(t, err, "no Wire, and no error")
	})
}

// oddError panics in one method.
type oddError struct{ at string }

func (e *oddError) hook(at string) {
	if e.at == at {
		panic("odd")
	}
}
func (e *oddError) Error() string { e.hook("Error"); return "odd" }
func (e *oddError) As(any) bool   { e.hook("As"); return false }
func (e *oddError) Is(error) bool { e.hook("Is"); return false }
func (e *oddError) Unwrap() error { e.hook("Unwrap"); return nil }

// TestError_Panics returns panicking errors everywhere the application returns an error, or gives
// them as the cause of an end.
func TestError_Panics(t *testing.T) {
	fails := asterisque.Func[string, string](20, "fails")
	aborts := asterisque.Stream[string, string, string, string](21, "aborts")
	waits := asterisque.Stream[string, string, string, string](22, "waits")
	for _, at := range []string{"Error", "As", "Is", "Unwrap"} {
		for name, opts := range map[string][]asterisque.Option{"": nil, "private": {asterisque.WithPrivateErrors()}} {
			t.Run(at+" "+name, func(t *testing.T) {
				odd := &oddError{at}
				svc := testkit.EchoService()
				fails.Handle(svc, func(context.Context, string) (string, error) { return "", odd })
				aborts.Handle(svc, func(_ context.Context, _ string, p *asterisque.Pipe[string, string]) (string, error) {
					p.Untyped().Abort(odd)
					return "", nil
				})
				waits.Handle(svc, func(ctx context.Context, _ string, _ *asterisque.Pipe[string, string]) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
				dialled, _ := testkit.Connect(t, svc, opts...)
				_, err := fails.Call(testkit.Background, dialled, "x")
				require.Error(t, err)
				call, err := aborts.Open(testkit.Background, dialled, "x")
				require.NoError(t, err)
				_, err = call.Result(testkit.Background)
				require.Error(t, err)

				ctx, cancel := context.WithCancelCause(testkit.Background)
				open, err := waits.Open(ctx, dialled, "x")
				require.NoError(t, err)
				cancel(odd)
				_, err = open.Result(testkit.Background)
				require.ErrorIs(t, err, asterisque.ErrCanceled)

				node := asterisque.NewNode(asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) { return nil, odd }}))
				defer node.Close()
				a, b := wire.Pipe()
				go node.Accept(testkit.Background, b)
				_, err = node.Attach(testkit.Background, a)
				require.ErrorIs(t, err, asterisque.ErrUnavailable)

				ctx, cancel = context.WithCancelCause(testkit.Background)
				_, err = node.Connect(ctx, "", asterisque.ReconnectConfig{First: time.Millisecond, Dial: func(context.Context) (wire.Wire, error) {
					cancel(odd)
					return nil, odd
				}})
				require.Error(t, err)
				_, c := wire.Pipe()
				ctx, cancel = context.WithCancelCause(testkit.Background)
				ended := make(chan error, 1)
				go func() { _, err := node.Attach(ctx, c); ended <- err }()
				cancel(odd)
				require.Error(t, <-ended)

				got, err := testkit.Echo.Call(testkit.Background, dialled, "goes on")
				require.NoError(t, err)
				require.Equal(t, "goes on", got)
			})
		}
	}
}

// TestPeer_NoCredentialInText formats a peer, and a session, in all ways of logs.
func TestPeer_NoCredentialInText(t *testing.T) {
	p := asterisque.Peer{ID: "agent\n", Subject: "alice", RemoteAddr: &net.TCPAddr{Port: 1}, Credential: []byte("hunter2hunter2")}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "peer", p)
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "peer", p)
	fmt.Fprintf(&log, "%v %+v %#v %s", p, p, p, p)
	require.Equal(t, 6, strings.Count(log.String(), "alice"))
	for _, secret := range []string{"hunter2", fmt.Sprintf("%v", p.Credential[:4])[1:10], "aHVudGVy", "0x68", "\nagent"} {
		require.NotContains(t, log.String(), secret)
	}
	s, _ := testkit.Connect(t, asterisque.NewService())
	id := s.ID()
	require.Equal(t, hex.EncodeToString(id[:4]), fmt.Sprint(s))
}
