package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/asterisque-go/asterisque/cluster/internal/kv"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/natswire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// leastPayload is the minimum message size of the NATS server: an entry, and its subject.
const leastPayload = mostEntry + 4<<10

// localServer is the URL of the NATS server of this machine.
const localServer = "nats://127.0.0.1:4222"

// connect connects to NATS.
func (c *Cluster) connect(start context.Context) error {
	options := append([]nats.Option{
		nats.Name("asterisque " + c.cfg.Name + " " + c.cfg.ID),
		nats.MaxReconnects(-1),
	}, c.cfg.Options...)
	options = append(options, c.noticeEvents, nats.Timeout(kv.Timeout))
	for {
		var err error
		c.nc, err = nats.Connect(defaulted(c.cfg.NATS, localServer), options...)
		switch {
		case start.Err() != nil:
			return context.Cause(start)
		case err == nil:
		case errors.Is(err, nats.ErrTimeout), os.IsTimeout(err):
			continue // the server is busy
		case c.cfg.NATS == "":
			return fmt.Errorf("cluster: Config.NATS is empty, and %s: %w; set it, or start a server here: broker.StartLocal", localServer, err)
		default:
			return fmt.Errorf("cluster: connecting to NATS: %w", err)
		}
		break
	}
	if most := c.nc.MaxPayload(); most < leastPayload {
		return fmt.Errorf("cluster: %w", &natswire.PayloadError{Limit: most, Need: leastPayload})
	}
	return nil
}

// noticeEvents is a nats.Option that adds handlers to those of the application.
func (c *Cluster) noticeEvents(o *nats.Options) error {
	reconnected, failed := o.ReconnectedCB, o.AsyncErrorCB
	o.ReconnectedCB = func(nc *nats.Conn) {
		c.again.Signal()
		if reconnected != nil {
			reconnected(nc)
		}
	}
	o.AsyncErrorCB = func(nc *nats.Conn, sub *nats.Subscription, err error) {
		if refused := c.refused.Load(); refused != nil && errors.Is(err, nats.ErrPermissionViolation) {
			(*refused)(err)
		}
		c.node.Logger().Warn("cluster: NATS", "error", err)
		if failed != nil {
			failed(nc, sub, err)
		}
	}
	return nil
}

// Conn returns the connection to NATS for further use by the program. The Cluster owns it and
// closes it.
func (c *Cluster) Conn() *nats.Conn { return c.nc }

// Prefix returns the part of the subjects that identifies the cluster: see [Config].Prefix.
func (c *Cluster) Prefix() string { return c.cfg.Prefix }

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
