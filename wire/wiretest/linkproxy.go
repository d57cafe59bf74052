package wiretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// LinkProxy forwards connections between clients and a server through a [Link]. It is safe for
// concurrent use, and has to be closed.
type LinkProxy struct {
	link    *Link // these are fixed
	addr    net.Addr
	ctx     context.Context // ends with the LinkProxy
	stop    context.CancelFunc
	running sync.WaitGroup // the goroutines

	mu   sync.Mutex
	open map[io.Closer]struct{} // guarded by mu; nil once the LinkProxy is closed
}

const (
	// coarse is the minimum interval between wake-ups of a proxy under much traffic. Bytes due in
	// the interval pass together, at the configured rate.
	coarse = 500 * time.Microsecond

	proxyWrite = 256 << 10 // bytes that a proxy writes at once, at most
)

// Proxy listens at a free port of 127.0.0.1, and forwards every connection through l to the TCP
// address target, such as "127.0.0.1:5330". The error is that of listening; a target that cannot be
// reached resets the connection of the client.
//
// For a sender, a full queue looks like a peer that reads slowly: nothing is lost unless
// [Lane.Drop] is set. Besides the queue, a connection buffers in each direction one read of up to 2
// ms of traffic, between 4 and 64 KiB, and in the sockets of the proxy four times that for reading
// and the same for writing, at least 16 KiB; Linux doubles these. The proxy does not configure the
// sockets of the client and the server. Their TCP sees the round trip of the loopback interface:
// its congestion control does not see the Link.
//
// Under much traffic, the proxy wakes up every half millisecond, so that the rate is exact, while a
// delay may be a millisecond longer, as timers are.
func (l *Link) Proxy(target string) (*LinkProxy, error) {
	listen := net.ListenConfig{Control: smallWindow(l.out.plan.socket())}
	ln, err := listen.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wiretest: proxy for %s: %w", target, err)
	}
	p := l.newProxy(ln.Addr())
	p.add(ln)
	forward := func(client *net.TCPConn) { p.forward(client, target) }
	p.running.Go(func() { acceptClients(p.ctx, ln, &p.running, forward) }) // ends with Close
	return p, nil
}

func (l *Link) newProxy(addr net.Addr) *LinkProxy {
	l.out.setGrain(coarse)
	l.in.setGrain(coarse)
	p := &LinkProxy{link: l, addr: addr, open: make(map[io.Closer]struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	return p
}

// Addr returns the address of the proxy for clients, as host:port.
func (p *LinkProxy) Addr() string { return p.addr.String() }

// Close stops listening, resets all connections, and waits for the goroutines of the proxy.
// Repeated calls return nil.
func (p *LinkProxy) Close() error {
	p.stop()
	p.mu.Lock()
	open := p.open
	p.open = nil
	p.mu.Unlock()
	for c := range open {
		c.Close()
	}
	p.running.Wait()
	return nil
}

// add registers c, to be closed with p. It closes c and returns false if that has been closed
// meanwhile.
func (p *LinkProxy) add(c io.Closer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		c.Close()
		return false
	}
	p.open[c] = struct{}{}
	return true
}

// remove closes c.
func (p *LinkProxy) remove(c io.Closer) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

// forward joins a client with the target until both have ended, or one fails.
func (p *LinkProxy) forward(client *net.TCPConn, target string) {
	out, in := p.link.out, p.link.in
	dial := net.Dialer{Control: smallWindow(in.plan.socket())}
	server, err := dial.DialContext(p.ctx, "tcp", target)
	if err != nil {
		reset(client)
		client.Close()
		return
	}
	j := &proxiedConn{client: client, server: server.(*net.TCPConn)}
	j.up, j.down = out.newFlow(out.plan.read(), false), in.newFlow(in.plan.read(), false)
	defer p.remove(j)
	if p.add(j) {
		j.run()
	}
}

// proxiedConn is a connection through a proxy.
type proxiedConn struct {
	client, server *net.TCPConn // these are fixed
	up, down       *flow        // these lock themselves
}

func (j *proxiedConn) run() {
	var sides sync.WaitGroup
	sides.Go(func() { j.send(j.client, j.up) }) // these four end with both sides, or with Close
	sides.Go(func() { j.receive(j.up, j.server) })
	sides.Go(func() { j.send(j.server, j.down) })
	sides.Go(func() { j.receive(j.down, j.client) })
	sides.Wait()
	j.client.Close() // gracefully, unless Close was faster
	j.server.Close()
}

// Close ends the connection at once. A side that has not closed sees a reset.
func (j *proxiedConn) Close() error {
	reset(j.client)
	reset(j.server)
	j.up.deafen(errClosed)
	j.down.deafen(errClosed)
	return errors.Join(j.client.Close(), j.server.Close())
}

// send moves bytes from c into f.
func (j *proxiedConn) send(c *net.TCPConn, f *flow) {
	b := make([]byte, f.lane.plan.read())
	for {
		n, err := c.Read(b)
		f.put(b[:n])
		if err != nil {
			f.finish(errClosed)
			if !errors.Is(err, io.EOF) {
				j.Close()
			}
			return
		}
	}
}

// receive moves bytes that have crossed f to c.
func (j *proxiedConn) receive(f *flow, c *net.TCPConn) {
	b := make([]byte, proxyWrite)
	c.SetWriteBuffer(f.lane.plan.socket())
	for {
		n, err := f.take(b)
		if err == nil {
			_, err = c.Write(b[:n])
		}
		if errors.Is(err, io.EOF) {
			c.CloseWrite()
			return
		}
		if err != nil {
			j.Close()
			return
		}
	}
}
