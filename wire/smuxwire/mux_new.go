package smuxwire

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"sync"

	"github.com/xtaci/smux"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Client makes a Mux of a connection that this side has dialled. The Mux owns c. c has to carry
// bytes in order and without loss; one Read and one Write may run at the same time, and Close at
// any time, which ends both. The error is that of an option.
func Client(c io.ReadWriteCloser, opts ...Option) (*Mux, error) { return newMux(c, true, nil, opts) }

// Server makes a Mux of a connection that the other side has dialled. Otherwise it is as [Client];
// one end has to be a Client and the other a Server.
func Server(c io.ReadWriteCloser, opts ...Option) (*Mux, error) { return newMux(c, false, nil, opts) }

// newMux makes a Mux that releases place when its connection has been closed.
func newMux(c io.ReadWriteCloser, client bool, place transport.Place, opts []Option) (*Mux, error) {
	cfg, err := newConfig(opts)
	if err != nil {
		c.Close()
		leave(place)
		return nil, err
	}
	m := &Mux{cfg: cfg, place: place, accepted: make(chan wire.Wire, cfg.waiting), opens: make(chan struct{}, 1), streams: make(map[uint32]*stream)}
	m.arrived = sync.NewCond(&m.mu)
	m.ctx, m.end = context.WithCancelCause(context.Background())
	m.tls, _ = c.(*tls.Conn)
	m.conn = newConn(c, byte(cfg.version), m)
	m.conn.place = place
	m.conn.frames = newCrowd(cfg.wires*cfg.window/perFrame, cfg.window/perFrame)
	start := smux.Server
	if client {
		m.odd, m.last = 1, 1
		start = smux.Client
	}
	if m.sess, err = start(m.conn, cfg.smux()); err != nil {
		m.conn.finish()
		return nil, fmt.Errorf("smuxwire: %w", err)
	}
	go m.acceptLoop() // ends with the connection
	return m, nil
}
