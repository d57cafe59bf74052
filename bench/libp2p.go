package main

import (
	"context"
	"io"
	"math"
	"net"

	"github.com/libp2p/go-yamux/v5"
)

// libp2pImpl returns libp2p's yamux as libp2p itself configures it: windows grow to 16 MiB, and the
// number of streams is not limited here. It has a larger buffer for reading, because no layer below
// it has one here.
func libp2pImpl() *impl {
	cfg := yamux.DefaultConfig()
	cfg.MaxStreamWindowSize = 16 << 20
	cfg.MaxIncomingStreams = math.MaxUint32
	cfg.ReadBufSize = 32 << 10
	cfg.LogOutput = io.Discard
	end := func(s *yamux.Session, err error) (muxSession, error) { return libp2pSession{s}, err }
	return muxImpl("libp2p-yamux", overTCP(
		func(c net.Conn) (muxSession, error) { return end(yamux.Server(c, cfg, nil)) },
		func(c net.Conn) (muxSession, error) { return end(yamux.Client(c, cfg, nil)) },
	))
}

type libp2pSession struct{ s *yamux.Session }

func (s libp2pSession) open() (io.ReadWriteCloser, error) {
	return s.s.OpenStream(context.Background())
}
func (s libp2pSession) accept() (io.ReadWriteCloser, error) { return s.s.AcceptStream() }
func (s libp2pSession) close()                              { s.s.Close() }
