package broker

import (
	"net"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

// freeAddr returns an address without a listener.
func freeAddr(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, ln.Close())
	return ln.Addr().String()
}

func TestStartLocal_OneOfMany(t *testing.T) {
	addr := freeAddr(t)
	all := make(chan *Broker, 5)
	for range cap(all) {
		go func() { // ends with startLocal
			b, err := startLocal(addr)
			if err != nil {
				t.Error(err)
			}
			all <- b
		}()
	}
	started := 0
	for range cap(all) {
		b := <-all
		require.NotNil(t, b)
		defer b.Close()
		require.Equal(t, "nats://"+addr, b.URL())
		if b.Server() != nil {
			started++
			continue
		}
		nc, err := nats.Connect(b.URL())
		require.NoError(t, err)
		require.NoError(t, b.Close(), "the server of another program")
		require.NoError(t, nc.Flush(), "it goes on")
		nc.Close()
	}
	require.Equal(t, 1, started)
}

func TestStartLocal_NotNATS(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	go func() { // ends with ln
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("220 mail.example.org ESMTP\r\n"))
			c.Close()
		}
	}()
	b, err := startLocal(ln.Addr().String())
	require.Nil(t, b)
	require.ErrorContains(t, err, "in use")
}
