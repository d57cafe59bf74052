package exchange_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// through returns the URL of a forwarder to another URL. For each connection it sends a function to
// cut that cuts the connection.
func through(t testing.TB, url string, cut chan<- func()) string {
	t.Helper()
	return "tcp://" + forwarded(t, func(near net.Conn) (net.Conn, error) {
		far, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
		if err == nil {
			cut <- func() { near.Close(); far.Close() }
		}
		return far, err
	})
}

// gate returns an address that forwards to another one while it is open.
func gate(t testing.TB, open *atomic.Bool, to string) (at string) {
	t.Helper()
	return forwarded(t, func(net.Conn) (net.Conn, error) {
		if !open.Load() {
			return nil, errors.New("the gate is closed")
		}
		return net.Dial("tcp", to)
	})
}

// forwarded returns an address that forwards connections to those made by dial.
func forwarded(t testing.TB, dial func(near net.Conn) (far net.Conn, err error)) (at string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { ln.Close() })
	go func() { // ends with the listener
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := dial(near)
			if err != nil {
				near.Close()
				continue
			}
			go carry(near, far) // ends with either
			go carry(far, near) // the same
		}
	}()
	return ln.Addr().String()
}

func carry(from, to net.Conn) {
	io.Copy(to, from)
	from.Close()
	to.Close()
}
