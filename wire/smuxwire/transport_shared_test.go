package smuxwire_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
)

// counting is a net.Listener that counts its connections.
type counting struct {
	net.Listener
	accepted atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return c, err
}

// acceptAll accepts wires until l is closed, and then closes them.
func acceptAll(t *testing.T, l wire.Listener) {
	over := make(chan struct{})
	go func() { // ends with l
		defer close(over)
		for {
			w, err := l.Accept()
			if err != nil {
				return
			}
			defer w.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-over })
}

// Concurrent dials to one address make one connection.
func TestShared_ManyDialers(t *testing.T) {
	server, client := tlsOptions(t)
	server.TLS.NextProtos = []string{"asterisque.smux/1"}
	for _, scheme := range []string{"smux", "smux+tls"} {
		t.Run(scheme, func(t *testing.T) {
			raw, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			counted := &counting{Listener: raw}
			below := net.Listener(counted)
			if scheme == "smux+tls" {
				below = tls.NewListener(counted, server.TLS)
			}
			l := smuxwire.Listen(below, scheme+"://"+raw.Addr().String())
			defer l.Close()
			acceptAll(t, l)
			wires := make([]wire.Wire, 50)
			var all errgroup.Group
			for i := range wires {
				all.Go(func() (err error) {
					wires[i], err = wire.Dial(t.Context(), l.URL(), client)
					return err
				})
			}
			require.NoError(t, all.Wait())
			for _, w := range wires {
				defer w.Close()
				require.Equal(t, wires[0].LocalAddr(), w.LocalAddr())
			}
			require.EqualValues(t, 1, counted.accepted.Load())
		})
	}
}

// A connection ends if its maker cancels at the last moment.
func TestShared_MakerGivesUp(t *testing.T) {
	for range 200 {
		raw, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { // ends with the attempt
			w, err := wire.Dial(ctx, "smux://"+raw.Addr().String(), wire.Options{})
			if err == nil {
				w.Close()
			}
			over <- err
		}()
		c, err := raw.Accept()
		require.NoError(t, err)
		cancel()
		<-over
		require.NoError(t, c.SetReadDeadline(time.Now().Add(2*time.Minute)))
		_, err = io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the connection has no Wire")
		c.Close()
		raw.Close()
	}
}

// A TLS callback that does not return costs one attempt.
func TestShared_TLSCallback(t *testing.T) {
	server, client := tlsOptions(t)
	for name, misbehave := range map[string]func(){
		"panics": func() { panic("oops") }, "ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, "smux+tls://127.0.0.1:0", server)
			acceptAll(t, l)
			entered, goOn := make(chan struct{}), make(chan struct{})
			var asked atomic.Bool
			mine := client.TLS.Clone()
			mine.VerifyConnection = func(tls.ConnectionState) error {
				if asked.CompareAndSwap(false, true) {
					close(entered)
					<-goOn
					misbehave()
				}
				return nil
			}
			dial := func() (wire.Wire, error) { return wire.Dial(t.Context(), l.URL(), wire.Options{TLS: mine}) }
			ended := make(chan struct{})
			go func() { // ends by itself, after goOn
				defer close(ended)
				defer func() { recover() }()
				dial()
			}()
			<-entered
			impatient, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := wire.Dial(impatient, l.URL(), wire.Options{TLS: mine})
			require.ErrorIs(t, err, context.Canceled, "it shares the attempt, and waits no longer than its context")
			shared := make(chan error, 1)
			go func() { // ends with its Wire; it shares the attempt, if it is early enough
				w, err := dial()
				if err == nil {
					w.Close()
				}
				shared <- err
			}()
			close(goOn)
			<-ended
			require.NoError(t, <-shared)
			w, err := dial()
			require.NoError(t, err)
			require.NoError(t, w.Close())
		})
	}
}
