package tunnel_test

import (
	"context"
	"net"
	"testing"

	"golang.org/x/net/nettest"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/tunnel"
)

// TestConn_NetTest runs golang.org/x/net/nettest several times over connections of one session,
// from both ends.
func TestConn_NetTest(t *testing.T) {
	for name, connect := range map[string]func(testing.TB, *asterisque.Service, ...asterisque.Option) (*asterisque.Session, *asterisque.Session){
		"memory": inMemory, "TCP": overTCP,
	} {
		for range 3 {
			svc := asterisque.NewService()
			ln := tunnel.Listen(svc, number, "test")
			s, _ := connect(t, svc)
			make := func() (c1, c2 net.Conn, stop func(), err error) {
				c1, err = tunnel.Dial(background, s, number)
				if err != nil {
					return nil, nil, nil, err
				}
				c2, err = ln.Accept()
				return c1, c2, func() { c1.Close(); c2.Close() }, err
			}
			t.Run(name+" from the dialler", func(t *testing.T) { nettest.TestConn(t, make) })
			t.Run(name+" from the acceptor", func(t *testing.T) {
				nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
					c2, c1, stop, err = make()
					return c1, c2, stop, err
				})
			})
		}
	}
}

// TestNewConn_NetTest runs nettest over Conns that NewConn makes, in a handler and of an opened
// pipe.
func TestNewConn_NetTest(t *testing.T) {
	svc := asterisque.NewService()
	served := make(chan *tunnel.Conn)
	svc.Handle(number, "conn", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		served <- tunnel.NewConn(p, nil)
		<-ctx.Done()
		return nil, nil
	})
	s, _ := inMemory(t, svc)
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		life, end := context.WithCancel(background)
		p, err := s.Open(life, number, nil)
		if err != nil {
			end()
			return nil, nil, nil, err
		}
		c1, c2 = tunnel.NewConn(p, s), <-served
		return c1, c2, func() { c1.Close(); c2.Close(); end() }, nil
	})
}
