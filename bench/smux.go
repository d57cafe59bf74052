package main

import (
	"io"
	"net"

	"github.com/xtaci/smux"
)

// smuxImpl returns xtaci/smux in its version 2, which has flow control for each stream, and with
// larger windows.
func smuxImpl() *impl { return smuxOf("smux", 256<<10, 16<<20) }

// smuxWideImpl returns it with windows that no path fills.
func smuxWideImpl() *impl { return wide(smuxOf("smux-wide", wideWindow, 4*wideWindow)) }

func smuxOf(name string, stream, session int) *impl {
	cfg := smux.DefaultConfig()
	cfg.Version = 2
	cfg.MaxStreamBuffer = stream
	cfg.MaxReceiveBuffer = session
	end := func(s *smux.Session, err error) (muxSession, error) { return smuxSession{s}, err }
	return muxImpl(name, overTCP(
		func(c net.Conn) (muxSession, error) { return end(smux.Server(c, cfg)) },
		func(c net.Conn) (muxSession, error) { return end(smux.Client(c, cfg)) },
	))
}

type smuxSession struct{ s *smux.Session }

func (s smuxSession) open() (io.ReadWriteCloser, error)   { return s.s.OpenStream() }
func (s smuxSession) accept() (io.ReadWriteCloser, error) { return s.s.AcceptStream() }
func (s smuxSession) close()                              { s.s.Close() }
