package flowtest

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// Kind makes wires of one kind. Its resources besides the Listener end with the test.
type Kind func(testing.TB) Wires

// Wires makes the wires of one scenario.
type Wires struct {
	Listener wire.Listener // owned by the caller of the Kind
	Dial     func(context.Context) (wire.Wire, error)
	// loses all present wires; nil: dialled wires are made faulty for that purpose
	Cut func()
}

// URL is wires that listen and dial at a URL, with TLS if its scheme requires that.
func URL(url string) Kind {
	return func(t testing.TB) Wires {
		server, client := testtls.Configs(t)
		l, err := wire.Listen(context.Background(), url, wire.Options{TLS: server})
		require.NoError(t, err)
		dial := func(ctx context.Context) (wire.Wire, error) {
			return wire.Dial(ctx, l.URL(), wire.Options{TLS: client})
		}
		return Wires{Listener: l, Dial: dial}
	}
}

// Proxied is TCP through a proxy, which cuts connections as a network does.
func Proxied(t testing.TB) Wires {
	w := URL("tcp://127.0.0.1:0")(t)
	p, err := wiretest.NewProxy(strings.TrimPrefix(w.Listener.URL(), "tcp://"), wiretest.Faults{})
	require.NoError(t, err)
	t.Cleanup(func() { p.Close() })
	w.Cut = p.Cut
	w.Dial = func(ctx context.Context) (wire.Wire, error) { return wire.Dial(ctx, "tcp://"+p.Addr(), wire.Options{}) }
	return w
}

// NetPipe is wires without a buffer: a write waits for its read.
func NetPipe(testing.TB) Wires {
	l := &pipeListener{dialled: make(chan wire.Wire), closed: make(chan struct{})}
	return Wires{Listener: l, Dial: l.dial}
}

// pipeListener accepts the other ends of net.Pipe.
type pipeListener struct {
	dialled chan wire.Wire
	closed  chan struct{}
	once    sync.Once // closes closed
}

func (l *pipeListener) dial(ctx context.Context) (wire.Wire, error) {
	a, b := net.Pipe()
	select {
	case l.dialled <- wire.FromConn(b):
		return wire.FromConn(a), nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (wire.Wire, error) {
	select {
	case w := <-l.dialled:
		return w, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error { l.once.Do(func() { close(l.closed) }); return nil }

func (l *pipeListener) URL() string { return "net.Pipe" }

// dialer dials wires, and loses the present one on demand.
type dialer struct {
	wires  Wires // fixed, as the next two
	faults wiretest.Faults
	faulty bool // the wires are made faulty

	mu   sync.Mutex
	last *wiretest.Wire // guarded by mu; nil unless faulty
	held chan struct{}  // guarded by mu; dialling waits until it is closed; may be nil
}

// dialerOf returns a dialer for wires with the given bandwidth in bytes per second, 0 being no
// limit.
func dialerOf(w Wires, bandwidth int, mayCut bool) *dialer {
	d := wiretest.Direction{Bandwidth: bandwidth}
	if bandwidth > 0 {
		d.Delay = time.Millisecond // so that frames are in flight at any time
	}
	return &dialer{wires: w, faults: wiretest.Faults{Out: d, In: d}, faulty: bandwidth > 0 || mayCut && w.Cut == nil}
}

func (d *dialer) dial(ctx context.Context) (wire.Wire, error) {
	if err := d.wait(ctx); err != nil {
		return nil, err
	}
	w, err := d.wires.Dial(ctx)
	if err != nil || !d.faulty {
		return w, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = wiretest.Faulty(w, d.faults)
	return d.last, nil
}

// wait waits until the network is available.
func (d *dialer) wait(ctx context.Context) error {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	if held == nil {
		return nil
	}
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cut loses the present Wire.
func (d *dialer) cut() {
	d.mu.Lock()
	last := d.last
	d.mu.Unlock()
	if last != nil {
		last.Cut()
	}
	if d.wires.Cut != nil {
		d.wires.Cut()
	}
}

// away loses the present Wire, and blocks dialling until back is called.
func (d *dialer) away() (back func()) {
	held := make(chan struct{})
	d.mu.Lock()
	d.held = held
	d.mu.Unlock()
	d.cut()
	return func() { close(held) }
}
