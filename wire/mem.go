package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"syscall"

	"github.com/asterisque-go/asterisque/wire/transport"
)

// memTransport is for "mem://name": wires within this program, by Pipe.
type memTransport struct {
	mu        sync.Mutex
	listening map[string]*memListener // guarded by mu; by name
}

func (m *memTransport) Dial(ctx context.Context, u *url.URL, _ Options) (Wire, error) {
	name, err := memName(u)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	l := m.listening[name]
	m.mu.Unlock()
	if l == nil {
		return nil, errNobody
	}
	return l.connect(ctx)
}

// errNobody is ECONNREFUSED, for programs that branch on it as they do over TCP.
var errNobody = fmt.Errorf("no listener of that name in this program: %w", syscall.ECONNREFUSED)

func (m *memTransport) Listen(_ context.Context, u *url.URL, o Options) (Listener, error) {
	name, err := memName(u)
	if err != nil {
		return nil, err
	}
	if o.ReusePort {
		return nil, transport.NoReusePort("a name within this program")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listening[name] != nil {
		return nil, fmt.Errorf("this program listens there already: %w", syscall.EADDRINUSE)
	}
	l := &memListener{transport: m, name: name, url: u.String(), waiting: make(chan Wire, memBacklog), closed: make(chan struct{})}
	m.listening[name] = l
	return l, nil
}

func (m *memTransport) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.listening, name)
}

// memName returns the name in u.
func memName(u *url.URL) (string, error) {
	err := transport.Bare(u)
	if err == nil && u.Host == "" {
		err = errors.New("the name is missing")
	}
	if err != nil {
		return "", transport.BadURL(fmt.Errorf("%w; for example mem://name", err))
	}
	return u.Host + u.Path, nil
}

// memBacklog is how many wires can wait to be accepted; dialling one more blocks.
const memBacklog = 128

type memListener struct {
	transport *memTransport // these are fixed
	name      string
	url       string

	waiting chan Wire // dialled and not accepted
	closed  chan struct{}
	once    sync.Once // closes closed
}

// connect makes a Wire and passes one end to Accept.
func (l *memListener) connect(ctx context.Context) (Wire, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	here, there := newPipe(transport.Addr("mem", l.name))
	select {
	case l.waiting <- there:
	case <-l.closed:
		return nil, errNobody
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	select {
	case <-l.closed: // possibly too late for Close to find the queued Wire
		there.Close()
	default:
	}
	return here, nil
}

// Accept implements Listener.
func (l *memListener) Accept() (Wire, error) {
	select {
	case <-l.closed:
	default:
		select {
		case w := <-l.waiting:
			return w, nil
		case <-l.closed:
		}
	}
	return nil, fmt.Errorf("wire: accept at %s: %w", transport.ShowURL(l.url), net.ErrClosed)
}

// Close implements Listener.
func (l *memListener) Close() error {
	l.once.Do(func() {
		l.transport.forget(l.name)
		close(l.closed)
		for {
			select {
			case w := <-l.waiting:
				w.Close()
			default:
				return
			}
		}
	})
	return nil
}

// URL implements Listener.
func (l *memListener) URL() string { return l.url }
