package cluster

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// serve serves a listener until this node leaves the cluster. It returns once serving has begun, or
// with the error of a node that does not serve it.
func (c *Cluster) serve(ln wire.Listener) error {
	s := &serveListener{Listener: ln, begun: make(chan struct{})}
	failed := make(chan error, 1)
	c.running.Go(func() { // ends with c.ctx
		err := c.node.Serve(c.ctx, s)
		failed <- err
		if err != nil && !errors.Is(err, net.ErrClosed) {
			c.end(fmt.Errorf("cluster: %w", err))
		}
	})
	select {
	case <-s.begun:
		return nil
	case err := <-failed:
		return fmt.Errorf("cluster: %w", either(err, net.ErrClosed))
	}
}

// serveListener is a Listener that reports when it is first served.
type serveListener struct {
	wire.Listener
	once  sync.Once
	begun chan struct{} // closed with the first Accept
}

// Accept implements wire.Listener.
func (s *serveListener) Accept() (wire.Wire, error) {
	s.once.Do(func() { close(s.begun) })
	return s.Listener.Accept()
}

// Private implements wire.Private.
func (s *serveListener) Private() bool {
	p, ok := s.Listener.(wire.Private)
	return !ok || p.Private()
}

// Guard implements transport.Guarded.
func (s *serveListener) Guard(by transport.Door) {
	if g, ok := s.Listener.(transport.Guarded); ok {
		g.Guard(by)
	}
}
