package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"

	"github.com/quic-go/quic-go"
)

// quicImpl returns quic-go: UDP and always encrypted, so that it does more work than the other
// implementations. All connections of one side share a socket, as its documentation advises;
// windows begin at their maximum instead of growing.
func quicImpl() *impl { return quicOf("quic", 6<<20, 15<<20) }

// quicWideImpl returns it with windows that no path fills.
func quicWideImpl() *impl { return wide(quicOf("quic-wide", wideWindow, 4*wideWindow)) }

func quicOf(name string, stream, conn uint64) *impl {
	cfg := &quic.Config{
		InitialStreamReceiveWindow:     stream,
		MaxStreamReceiveWindow:         stream,
		InitialConnectionReceiveWindow: conn,
		MaxConnectionReceiveWindow:     conn,
		MaxIncomingStreams:             1 << 20,
	}
	return muxImpl(name, func(p *path) (muxTransport, error) { return listenQUIC(p, cfg) })
}

type quicTransport struct {
	here, there *quic.Transport
	ln          *quic.Listener
	tls         *tls.Config
	addr        net.Addr // where to dial
	cfg         *quic.Config
}

func listenQUIC(p *path, cfg *quic.Config) (muxTransport, error) {
	server, client, err := tlsConfigs("bench")
	if err != nil {
		return nil, err
	}
	here, err := quicSocket()
	if err != nil {
		return nil, err
	}
	there, err := quicSocket()
	if err != nil {
		here.Conn.Close()
		return nil, err
	}
	ln, err := there.Listen(server, cfg)
	if err != nil {
		here.Conn.Close()
		there.Conn.Close()
		return nil, err
	}
	t := &quicTransport{here: here, there: there, ln: ln, tls: client, cfg: cfg}
	addr, err := p.udp(ln.Addr().String())
	if err == nil {
		t.addr, err = net.ResolveUDPAddr("udp", addr)
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func quicSocket() (*quic.Transport, error) {
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	return &quic.Transport{Conn: c}, err
}

func (t *quicTransport) accept() (muxSession, error) {
	c, err := t.ln.Accept(context.Background())
	return quicSession{c}, err
}

func (t *quicTransport) dial() (muxSession, error) {
	c, err := t.here.Dial(context.Background(), t.addr, t.tls, t.cfg)
	return quicSession{c}, err
}

func (t *quicTransport) close() {
	t.ln.Close()
	for _, s := range []*quic.Transport{t.here, t.there} {
		s.Close()
		s.Conn.Close()
	}
}

type quicSession struct{ c *quic.Conn }

func (s quicSession) open() (io.ReadWriteCloser, error) {
	st, err := s.c.OpenStreamSync(context.Background())
	return quicStream{st}, err
}

func (s quicSession) accept() (io.ReadWriteCloser, error) {
	st, err := s.c.AcceptStream(context.Background())
	return quicStream{st}, err
}

func (s quicSession) close() { s.c.CloseWithError(0, "") }

// quicStream is a stream with a Close for both directions.
type quicStream struct{ *quic.Stream }

func (s quicStream) Close() error {
	s.CancelRead(0)
	return s.Stream.Close()
}
