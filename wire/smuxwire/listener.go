package smuxwire

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"

	"github.com/asterisque-go/asterisque/wire"
)

// Listen implements wire.Transport.
func (t *transport) Listen(ctx context.Context, u *url.URL, o wire.Options) (wire.Listener, error) {
	address, err := wire.HostPort(u, false)
	if err != nil {
		return nil, err
	}
	cfg := wire.TLSConfig(o.TLS, alpn)
	if t.secure && len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil {
		return nil, errors.New("there is no certificate; put one into Options.TLS.Certificates, for example with tls.LoadX509KeyPair")
	}
	cfg.SessionTicketsDisabled = true // see wire.Options
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	found := u.Scheme + "://" + ln.Addr().String()
	if t.secure {
		ln = tls.NewListener(ln, cfg) // the handshakes are done when the connections are read
	}
	return Listen(ln, found), nil
}

// listener is a Listener whose connections carry many wires.
type listener struct {
	ln  net.Listener // these are fixed
	url string

	waiting chan result
	closed  chan struct{}
	once    sync.Once // closes closed
}

// result is what Accept returns.
type result struct {
	w   wire.Wire
	err error
}

// Listen makes a Listener of ln, which it owns from now on: each connection becomes a [Mux], and Accept returns the wires that the peers open on any of them. url is what its URL
// returns. The options have been checked if an earlier [Server] with the same ones has succeeded; wrong ones are the error of Accept.
func Listen(ln net.Listener, url string, opts ...Option) wire.Listener {
	l := &listener{ln: ln, url: url, waiting: make(chan result), closed: make(chan struct{})}
	go l.acceptLoop(opts) // ends with ln, which Close closes
	return l
}

func (l *listener) acceptLoop(opts []Option) {
	for {
		c, err := l.ln.Accept()
		if err != nil {
			l.put(result{nil, fmt.Errorf("wire: %w", err)})
			select {
			case <-l.closed:
				return
			default:
				continue // it may pass
			}
		}
		wire.BoundUnsent(c)
		m, err := Server(c, opts...)
		if err != nil {
			l.put(result{nil, err})
			continue
		}
		go l.serve(m) // ends with m, or with l
	}
}

// serve hands on the wires of m.
func (l *listener) serve(m *Mux) {
	for none := true; ; none = false {
		w, err := m.next(l.closed)
		switch {
		case err == nil:
			l.put(result{w, nil})
			continue
		case err == errStopped:
			m.leave()
			m.closeWaiting()
		case none && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, net.ErrClosed): // nobody would learn of it otherwise
			l.put(result{wire.FromConn(failed{m.conn, m.Err()}), nil})
		}
		return
	}
}

// failed is the connection of a peer that could not even open a Wire.
type failed struct {
	*conn
	err error
}

// Read implements io.Reader.
func (f failed) Read([]byte) (int, error) { return 0, f.err }

// Write implements io.Writer.
func (f failed) Write([]byte) (int, error) { return 0, f.err }

// put waits for an Accept, or for Close.
func (l *listener) put(r result) {
	select {
	case l.waiting <- r:
	case <-l.closed:
		if r.w != nil {
			r.w.Close()
		}
	}
}

// Accept implements wire.Listener.
func (l *listener) Accept() (wire.Wire, error) {
	select {
	case <-l.closed:
	default:
		select {
		case r := <-l.waiting:
			return r.w, r.err
		case <-l.closed:
		}
	}
	return nil, fmt.Errorf("wire: accept at %s: %w", wire.ShowURL(l.url), net.ErrClosed)
}

// Close implements wire.Listener.
func (l *listener) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.ln.Close()
	})
	return err
}

// URL implements wire.Listener.
func (l *listener) URL() string { return l.url }
