package natstest

import (
	"context"
	"crypto/rand"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats-server/v2/server/ats"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// Timeout is the time limit for an event that happens soon.
const Timeout = 2 * time.Minute

// Bubble runs a test in a bubble of synctest, in which leases, times to live and pauses take no
// real time, and a slow machine delays no test. The NATS servers that start there have no port, and
// are reached within the program: see place.
//
// Files of such a server age by the real time of the test, by a clock that all servers of the
// program share. So a node keeps all data in memory, except for a server with a Dir.
func Bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	ats.Register() // starts that clock outside of the bubble, with its goroutine
	t.Cleanup(ats.Unregister)
	outer.begin()
	t.Cleanup(outer.end)
	inBubbles.Store(t.Name(), true)
	t.Cleanup(func() { inBubbles.Delete(t.Name()) })
	now := time.Now()
	synctest.Test(t, func(t *testing.T) {
		fakeclock.Sleep(time.Until(now)) // from the year 2000
		f(t)
	})
}

// inBubbles has the names of the tests that run in a bubble.
var inBubbles sync.Map

func inBubble(t testing.TB) bool {
	_, ok := inBubbles.Load(t.Name())
	return ok
}

// place is the address of a NATS server in a bubble: that of the last server that was started
// there.
type place struct {
	forgets bool // a restart loses all streams; fixed

	mu     sync.Mutex
	server *server.Server // guarded by mu
}

func (p *place) leadTo(s *server.Server) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = s
}

// places has the places of the servers in bubbles, by name.
var places sync.Map

// InProcessConn implements nats.InProcessConnProvider.
func (p *place) InProcessConn() (net.Conn, error) {
	p.mu.Lock()
	s := p.server
	p.mu.Unlock()
	return s.InProcessConn()
}

// inPlace binds the server of c to a place of the bubble. A server without a name gets a new place.
func inPlace(t testing.TB, c broker.Config) (broker.Config, *place) {
	if c.Name == "" {
		c.Name = rand.Text()
	}
	p, _ := places.LoadOrStore(c.Name, &place{forgets: c.Dir == ""})
	t.Cleanup(func() { places.Delete(c.Name) })
	before := c.Change
	c.Change = func(o *server.Options) {
		o.DontListen = true
		// not dialled, but it distinguishes the server
		o.Host, o.Port = BubbleHost, 4222
		if before != nil {
			before(o)
		}
	}
	return c, p.(*place)
}

// StartServer starts a NATS server, which ends with the test. In a bubble it has no port.
func StartServer(t testing.TB, c broker.Config) *broker.Broker {
	t.Helper()
	var p *place
	if inBubble(t) {
		c, p = inPlace(t, c)
	}
	b, err := broker.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { b.Close() })
	if p != nil {
		p.leadTo(b.Server())
	}
	return b
}

// BubbleHost is the host in the URLs of servers in bubbles.
const BubbleHost = "bubble"

// Restarted returns the configuration of a server that replaces b, with its address and its files.
func Restarted(b *broker.Broker, dir string) broker.Config {
	if at := b.Server().Addr(); at != nil {
		return broker.Config{Addr: at.String(), Dir: dir}
	}
	return broker.Config{Name: b.Server().Name(), Dir: dir}
}

// ThreeServers starts a NATS cluster of three servers, and returns all their URLs.
func ThreeServers(t testing.TB) (all [3]*broker.Broker, urls string) {
	routes := freeAddresses(t, len(all))
	var at []string
	for i := range all {
		all[i] = StartServer(t, broker.Config{Name: string('a' + rune(i)), At: routes[i], Routes: routes, Dir: t.TempDir()})
		at = append(at, all[i].URL())
	}
	return all, strings.Join(at, ",")
}

// freeAddresses returns addresses without a listener.
func freeAddresses(t testing.TB, n int) (all []string) {
	for range n {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer ln.Close()
		all = append(all, ln.Addr().String())
	}
	return all
}

// Reaching returns the options of a connection to a server: none if it has a port.
func Reaching(b *broker.Broker) []nats.Option {
	if p, ok := places.Load(b.Server().Name()); ok {
		return []nats.Option{nats.InProcessServer(p.(*place))}
	}
	return nil
}

// Forgets reports whether a server is in a bubble, and stores no files.
func Forgets(b *broker.Broker) bool {
	p, ok := places.Load(b.Server().Name())
	return ok && p.(*place).forgets
}

// Connect connects to a server until the test ends.
func Connect(t testing.TB, b *broker.Broker, opts ...nats.Option) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(b.URL(), append(Reaching(b), opts...)...)
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return nc
}

// Package nats pools the timers of its waits, across bubbles too. A wait with a context takes no
// timer, so the following helpers wait with one.

// Flush waits until the server has read all messages that nc has sent.
func Flush(nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), Timeout)
	defer cancel()
	return nc.FlushWithContext(ctx)
}

// Request returns the answer to a message.
func Request(nc *nats.Conn, subject string, data []byte, within time.Duration) (*nats.Msg, error) {
	return RequestMsg(nc, &nats.Msg{Subject: subject, Data: data}, within)
}

// RequestMsg is Request for a message with headers.
func RequestMsg(nc *nats.Conn, m *nats.Msg, within time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return nc.RequestMsgWithContext(ctx, m)
}

// Next returns the next message of a subscription.
func Next(sub *nats.Subscription, within time.Duration) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}
