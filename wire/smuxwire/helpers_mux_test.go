package smuxwire_test

import (
	"net"
	"testing"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
	"github.com/stretchr/testify/require"
)

// tcpPair returns both ends of a TCP connection.
func tcpPair(t testing.TB) (dialled, accepted net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dialled, err = net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	accepted, err = l.Accept()
	require.NoError(t, err)
	t.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// muxes returns both ends of a connection.
func muxes(t testing.TB, opts ...smuxwire.Option) (client, server *smuxwire.Mux) {
	c, s := tcpPair(t)
	client, err := smuxwire.Client(c, opts...)
	require.NoError(t, err)
	server, err = smuxwire.Server(s, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// open opens a Wire from one Mux to the other.
func open(t testing.TB, from, to *smuxwire.Mux) (opened, accepted wire.Wire) {
	t.Helper()
	opened, err := from.Open(t.Context())
	require.NoError(t, err)
	accepted, err = to.Accept()
	require.NoError(t, err)
	return opened, accepted
}

// pingPong sends a frame in each direction.
func pingPong(t testing.TB, a, b wire.Wire) {
	t.Helper()
	for _, ends := range [][2]wire.Wire{{a, b}, {b, a}} {
		require.NoError(t, ends[0].WriteFrames([][]byte{[]byte("hello")}))
		frame, err := ends[1].ReadFrame(5)
		require.NoError(t, err)
		require.Equal(t, "hello", string(frame))
	}
}
