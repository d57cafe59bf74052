package main

import (
	"io"
	"net"

	"github.com/hashicorp/yamux"
)

// yamuxImpl returns hashicorp/yamux with its defaults: larger windows make it slower.
func yamuxImpl() *impl {
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	end := func(s *yamux.Session, err error) (muxSession, error) { return yamuxSession{s}, err }
	return muxImpl("yamux", overTCP(
		func(c net.Conn) (muxSession, error) { return end(yamux.Server(c, cfg)) },
		func(c net.Conn) (muxSession, error) { return end(yamux.Client(c, cfg)) },
	))
}

type yamuxSession struct{ s *yamux.Session }

func (s yamuxSession) open() (io.ReadWriteCloser, error)   { return s.s.OpenStream() }
func (s yamuxSession) accept() (io.ReadWriteCloser, error) { return s.s.AcceptStream() }
func (s yamuxSession) close()                              { s.s.Close() }
