package main

import (
	"context"
	"crypto/tls"
	"io"
	"net"

	"github.com/quic-go/quic-go"
)

// quicImpl returns quic-go: UDP and always encrypted, so that it does more work than the others.
// All connections of one side share a socket, as its documentation advises; windows begin at their
// maximum rather than to be learned.
func quicImpl() *impl { return muxImpl("quic", listenQUIC) }

var quicConfig = &quic.Config{
	InitialStreamReceiveWindow:     6 << 20,
	MaxStreamReceiveWindow:         6 << 20,
	InitialConnectionReceiveWindow: 15 << 20,
	MaxConnectionReceiveWindow:     15 << 20,
	MaxIncomingStreams:             1 << 20,
}

type quicTransport struct {
	here, there *quic.Transport
	ln          *quic.Listener
	tls         *tls.Config
}

func listenQUIC() (muxTransport, error) {
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
	ln, err := there.Listen(server, quicConfig)
	if err != nil {
		here.Conn.Close()
		there.Conn.Close()
		return nil, err
	}
	return &quicTransport{here, there, ln, client}, nil
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
	c, err := t.here.Dial(context.Background(), t.ln.Addr(), t.tls, quicConfig)
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

// quicStream is a stream whose Close ends both directions.
type quicStream struct{ *quic.Stream }

func (s quicStream) Close() error {
	s.CancelRead(0)
	return s.Stream.Close()
}
