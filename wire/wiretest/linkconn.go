package wiretest

import (
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// linkConn is one end of a connection through a Link.
type linkConn struct {
	local, remote net.Addr // these are fixed

	out, in *flow // these lock themselves
}

// errGone is the error of a write after the other end was closed.
var errGone = fmt.Errorf("wiretest: the other end of the link was closed: %w", syscall.EPIPE)

func newLinkConn(out, in *flow) *linkConn {
	c := &linkConn{out: out, in: in}
	c.local, c.remote = transport.Addrs(nil, "link")
	return c
}

func (c *linkConn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return c.in.take(p)
}

func (c *linkConn) Write(b []byte) (int, error) {
	if c.out.unheard() && c.in.finished() {
		return 0, errGone
	}
	return c.out.put(b)
}

func (c *linkConn) Close() error {
	c.out.finish(errClosed)
	c.in.deafen(errClosed)
	return nil
}

func (c *linkConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *linkConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.takeBy, t)
	return nil
}

func (c *linkConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.putBy, t)
	return nil
}

func (c *linkConn) LocalAddr() net.Addr  { return c.local }
func (c *linkConn) RemoteAddr() net.Addr { return c.remote }
