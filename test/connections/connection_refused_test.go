package connections

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// connectTo connects n to the server at url, and returns the error.
func connectTo(t *testing.T, n *asterisque.Node, url string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(testkit.Background, testkit.Patience)
	defer cancel()
	conn, err := n.Connect(ctx, url, asterisque.ReconnectConfig{First: time.Millisecond, Most: 10 * time.Millisecond})
	if err == nil {
		conn.Close()
	}
	return err
}

// An attempt that cannot succeed is not retried.
func TestConnect_HopelessNotRetried(t *testing.T) {
	plain := testkit.Serve(t, testkit.NewNode(t, asterisque.WithService(testkit.EchoService())))
	raw := testkit.Serve(t, testkit.NewNode(t, asterisque.WithCodecs(codec.Raw)))
	refusing := testkit.Serve(t, testkit.NewNode(t, asterisque.WithAccess(asterisque.Access{Accept: func(context.Context, asterisque.Peer) (*asterisque.Grant, error) {
		return nil, asterisque.ErrUnauthorized.Withf("not you")
	}})))

	for _, c := range []struct {
		name, url string
		opt       asterisque.Option
		want      string
	}{
		{"no common codec", raw, asterisque.WithCodecs(codec.JSON), "no common value codec"},
		{"the peer is refused", refusing, asterisque.WithID("x"), "not you"},
		{"no such scheme", "carrier-pigeon://roof", asterisque.WithID("x"), "carrier-pigeon"},
		{"no URL at all", "127.0.0.1:5330", asterisque.WithID("x"), ""},
		{"an option does not fit", plain, asterisque.WithWorkers(asterisque.Workers{Session: -1}), "Workers.Session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := connectTo(t, testkit.NewNode(t, c.opt), c.url)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}

// A peer of another version is not retried.
func TestConnect_OtherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := asterisque.NewNode()
		defer here.Close()
		dials := 0
		_, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: func(context.Context) (wire.Wire, error) {
			dials++
			a, b := wire.Pipe()
			go func() {
				b.ReadFrame(1 << 20)
				h := testkit.Hello()
				h.Version, h.Session = 0, make([]byte, 16)
				b.WriteFrames([][]byte{h.AppendTo(nil)})
			}()
			return a, nil
		}})
		require.ErrorIs(t, err, asterisque.ErrHandshake)
		require.ErrorContains(t, err, "version 0")
		require.Equal(t, 1, dials)
	})
}

// TestConnect_Retried requires that Connect retries after a temporary failure, of each kind.
func TestConnect_Retried(t *testing.T) {
	closing := func(say ...interface{ AppendTo([]byte) []byte }) func() (wire.Wire, error) {
		return func() (wire.Wire, error) {
			a, b := wire.Pipe()
			go func() {
				b.ReadFrame(1 << 20)
				for _, m := range say {
					b.WriteFrames([][]byte{m.AppendTo(nil)})
				}
				b.Close()
			}()
			return a, nil
		}
	}
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, fail := range map[string]func() (wire.Wire, error){
		"the connection is refused":     func() (wire.Wire, error) { return nil, refused },
		"there is no such host":         func() (wire.Wire, error) { return nil, &net.DNSError{IsNotFound: true} },
		"the peer closes":               closing(),
		"the peer is going away":        closing(message.SessionClose{Code: codec.Unavailable, Message: "going away"}),
		"the peer has too much to do":   closing(message.SessionClose{Code: codec.Overloaded, Message: "too many"}),
		"the session is closed at once": closing(message.SessionClose{Code: codec.SessionClosed}),
		"the peer says nothing":         func() (wire.Wire, error) { a, _ := wire.Pipe(); return a, nil },
		"the wire is cut while it speaks": func() (wire.Wire, error) {
			a, b := wire.Pipe()
			go b.ReadFrame(1 << 20)
			return wiretest.Faulty(a, wiretest.Faults{In: wiretest.Direction{CutAfter: 1}, Out: wiretest.Direction{CutAfter: 20}}), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(testkit.EchoService()))
				defer here.Close()
				defer there.Close()
				l := &testkit.Links{To: there}
				var dials atomic.Int64
				conn, err := here.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: func(ctx context.Context) (wire.Wire, error) {
					if dials.Add(1) <= 3 {
						return fail()
					}
					return l.Dial(ctx)
				}})
				require.NoError(t, err)
				require.EqualValues(t, 4, dials.Load())
				_, err = testkit.Echo.Call(testkit.Background, conn, "")
				require.NoError(t, err)
				conn.Close()
			})
		})
	}
}
