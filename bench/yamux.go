package main

import (
	"io"
	"net"

	"github.com/hashicorp/yamux"
)

// yamuxImpl returns hashicorp/yamux with its defaults: larger windows make it slower.
func yamuxImpl() *impl { return yamuxOf("yamux", yamux.DefaultConfig()) }

// wideWindow is larger than the capacity of any path, in bytes.
const wideWindow = 64 << 20

// yamuxWideImpl returns it with windows that no path fills, and time to write.
func yamuxWideImpl() *impl {
	cfg := yamux.DefaultConfig()
	cfg.MaxStreamWindowSize = wideWindow
	cfg.ConnectionWriteTimeout = longest
	return wide(yamuxOf("yamux-wide", cfg))
}

// wide marks i as measured through links only.
func wide(i *impl) *impl {
	i.paths, i.only = true, true
	return i
}

func yamuxOf(name string, cfg *yamux.Config) *impl {
	cfg.LogOutput = io.Discard
	end := func(s *yamux.Session, err error) (muxSession, error) { return yamuxSession{s}, err }
	return muxImpl(name, overTCP(
		func(c net.Conn) (muxSession, error) { return end(yamux.Server(c, cfg)) },
		func(c net.Conn) (muxSession, error) { return end(yamux.Client(c, cfg)) },
	))
}

type yamuxSession struct{ s *yamux.Session }

func (s yamuxSession) open() (io.ReadWriteCloser, error)   { return s.s.OpenStream() }
func (s yamuxSession) accept() (io.ReadWriteCloser, error) { return s.s.AcceptStream() }
func (s yamuxSession) close()                              { s.s.Close() }
