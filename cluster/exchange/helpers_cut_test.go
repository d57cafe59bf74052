package exchange_test

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// through returns the URL of a way to another one, with a function for each connection that cuts
// it.
func through(t testing.TB, url string, cut chan<- func()) string {
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
			far, err := net.Dial("tcp", strings.TrimPrefix(url, "tcp://"))
			if err != nil {
				near.Close()
				continue
			}
			cut <- func() { near.Close(); far.Close() }
			go carry(near, far) // ends with either
			go carry(far, near) // the same
		}
	}()
	return "tcp://" + ln.Addr().String()
}

func carry(from, to net.Conn) {
	io.Copy(to, from)
	from.Close()
	to.Close()
}
