package resume

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// cutConn is a connection that is cut after a number of bytes in both directions together.
type cutConn struct {
	net.Conn
	left *atomic.Int64
}

func (c cutConn) Read(b []byte) (int, error)  { return c.some(b, c.Conn.Read) }
func (c cutConn) Write(b []byte) (int, error) { return c.some(b, c.Conn.Write) }

func (c cutConn) some(b []byte, do func([]byte) (int, error)) (int, error) {
	left := c.left.Load()
	if left <= 0 && len(b) > 0 {
		c.Conn.Close()
		return 0, net.ErrClosed
	}
	n, err := do(b[:min(int64(len(b)), left)])
	if c.left.Add(int64(-n)) <= 0 {
		c.Conn.Close()
	}
	if err == nil && n == 0 && len(b) > 0 {
		err = net.ErrClosed
	}
	return n, err
}

// exchange makes a session over a connection that is cut after budget bytes, and makes a call in
// each direction and a stream.
func exchange(here, there *asterisque.Node, budget *atomic.Int64) (err error) {
	a, b := net.Pipe()
	accepted := make(chan error, 1)
	go func() {
		s, err := there.Accept(testkit.Background, wire.FromConn(b))
		if err == nil {
			_, err = testkit.Echo.Call(testkit.Background, s, "there")
		}
		accepted <- err
	}()
	s, err := here.Attach(testkit.Background, wire.FromConn(cutConn{a, budget}))
	if err != nil {
		a.Close()
		return errors.Join(err, <-accepted)
	}
	defer s.Close()
	err = talk(s)
	if err != nil {
		s.Close()
	}
	return errors.Join(err, <-accepted)
}

func talk(s *asterisque.Session) error {
	if _, err := testkit.Echo.Call(testkit.Background, s, "here"); err != nil {
		return err
	}
	call, err := testkit.Sums.Open(testkit.Background, s, testkit.Window{N: 1})
	if err != nil {
		return err
	}
	if err := call.Send(testkit.Background, 1); err != nil {
		return err
	}
	if _, err := call.Recv(testkit.Background); err != nil {
		return err
	}
	if err := call.CloseSend(); err != nil {
		return err
	}
	_, err = call.Result(testkit.Background)
	return err
}

// A cut at any byte gives every caller one clear error.
func TestCut_AtAnyByte(t *testing.T) {
	svc := testkit.SumService()
	testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	const plenty = 1 << 20
	var whole int64
	for cut := int64(plenty); ; {
		synctest.Test(t, func(t *testing.T) {
			here := asterisque.NewNode(asterisque.WithService(svc))
			there := asterisque.NewNode(asterisque.WithService(svc))
			defer here.Close()
			defer there.Close()
			var budget atomic.Int64
			budget.Store(cut)
			err := exchange(here, there, &budget)
			if cut == plenty {
				require.NoError(t, err, "without a cut everything works")
				whole = plenty - budget.Load()
				return
			}
			if err != nil { // a cut in the last bytes may come when all is done
				var a *asterisque.Abort
				require.ErrorAs(t, err, &a, "cut after %d bytes", cut)
				require.NotEmpty(t, a.Error())
			} else {
				require.Greater(t, cut, whole/2)
			}
		})
		if cut == plenty {
			cut = 0
		} else if cut++; cut > whole {
			break
		}
	}
}
