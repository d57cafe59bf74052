package wiretest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Proxy forwards TCP connections between clients and a server, and injects faults into them. It is
// safe for concurrent use.
//
// The end of a connection on one side ends it on the other side, after all earlier bytes have
// arrived there. A direction cannot be closed separately.
type Proxy struct {
	listener net.Listener // these are fixed
	target   string
	faults   Faults
	ctx      context.Context // ends with the Proxy
	stop     context.CancelFunc
	running  sync.WaitGroup // the goroutines

	mu      sync.Mutex
	through map[*Conn]struct{} // guarded by mu; nil once the Proxy is closed
	dialled uint64             // guarded by mu; how many connections there have been
	refuse  bool               // guarded by mu
}

// NewProxy listens at a free port of 127.0.0.1 and forwards every connection to the TCP address
// target, such as "127.0.0.1:5330". Out of f applies to bytes from clients, In to bytes from the
// server. Each connection has the faults of f, with its own seed, which is derived from that of f
// and the number of earlier connections. The Proxy has to be closed. The error is that of
// listening; a target that cannot be reached ends the connection of the client.
func NewProxy(target string, f Faults) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("wiretest: proxy for %s: %w", target, err)
	}
	p := &Proxy{listener: l, target: target, faults: f, through: make(map[*Conn]struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.running.Go(func() { acceptClients(p.ctx, l, &p.running, p.forward) }) // ends with Close
	return p, nil
}

// Addr returns the address of the Proxy, as host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut loses all open connections, for both sides. New ones are accepted. See [Conn.Cut].
func (p *Proxy) Cut() { p.each((*Conn).Cut) }

// Stall stops all open connections until Heal. New ones are accepted. See [Conn.Stall].
func (p *Proxy) Stall() { p.each((*Conn).Stall) }

// HalfOpen silently loses all later bytes of the open connections; when one side closes, the other
// is not notified. New ones are accepted. See [Conn.HalfOpen].
func (p *Proxy) HalfOpen() { p.each((*Conn).HalfOpen) }

// Refuse ends every new connection at once, until Heal. Open connections continue.
func (p *Proxy) Refuse() { p.setRefuse(true) }

// Heal ends the effects of Stall, [Direction.StallAfter] and Refuse. A connection that was cut or
// is half-open stays so.
func (p *Proxy) Heal() {
	p.setRefuse(false)
	p.each((*Conn).Heal)
}

// Close stops listening and cuts all connections. It waits for the goroutines of the Proxy.
// Repeated calls return nil.
func (p *Proxy) Close() error {
	p.stop()
	p.listener.Close()
	p.mu.Lock()
	through := p.through
	p.through = nil
	p.mu.Unlock()
	for c := range through {
		c.Cut()
	}
	p.running.Wait()
	return nil
}

func (p *Proxy) setRefuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// each applies do to every open connection.
func (p *Proxy) each(do func(*Conn)) {
	p.mu.Lock()
	var list []*Conn
	for c := range p.through {
		list = append(list, c)
	}
	p.mu.Unlock()
	for _, c := range list {
		do(c)
	}
}

// acceptClients calls forward for each client that connects to l, on a goroutine of running, until
// l is closed. It is closed when ctx ends.
func acceptClients(ctx context.Context, l net.Listener, running *sync.WaitGroup, forward func(*net.TCPConn)) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files, which may be temporary
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		running.Go(func() { forward(c.(*net.TCPConn)) }) // ends with the connection, or its proxy
	}
}

// forward joins a client with the target until one of them closes, or the connection is cut.
func (p *Proxy) forward(client *net.TCPConn) {
	defer client.Close()
	server, err := p.dial()
	if err != nil {
		reset(client)
		return
	}
	c, ok := p.add(server)
	if !ok {
		return
	}
	defer p.remove(c)
	var there sync.WaitGroup
	there.Go(func() { // ends with the client, which is closed below, or with the faulty connection
		io.Copy(c, client)
		c.waitUntilClear() // the end passes only when bytes do
		c.Close()
	})
	io.Copy(client, c)
	if c.wasCut() {
		reset(client)
	}
	client.Close()
	there.Wait()
}

// dial connects to the target, unless connections are refused.
func (p *Proxy) dial() (net.Conn, error) {
	p.mu.Lock()
	refuse := p.refuse
	p.mu.Unlock()
	if refuse {
		return nil, syscall.ECONNREFUSED
	}
	return new(net.Dialer).DialContext(p.ctx, "tcp", p.target)
}

// add makes a connection to the target faulty, unless the Proxy has been closed meanwhile.
func (p *Proxy) add(server net.Conn) (*Conn, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.through == nil {
		server.Close()
		return nil, false
	}
	f := p.faults
	f.Seed += p.dialled
	p.dialled++
	c := FaultyConn(server, f)
	p.through[c] = struct{}{}
	return c, true
}

func (p *Proxy) remove(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.through, c)
}
