package transport_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/asterisque-go/asterisque/wire/transport"
	"github.com/stretchr/testify/require"
)

func TestIsHere(t *testing.T) {
	at := func(s string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	for _, c := range []struct {
		addr net.Addr
		here bool
	}{
		{nil, false},
		{at("127.0.0.1:1"), true},
		{at("127.9.9.9:1"), true},
		{at("[::1]:1"), true},
		{at("[::ffff:127.0.0.1]:1"), true},
		{at("0.0.0.0:1"), false},
		{at("192.168.0.1:1"), false},
		{at("[fe80::1%eth0]:1"), false},
		{at("[::ffff:192.0.2.1]:1"), false},
		{transport.Addr("unix", "/socket"), true},
		{transport.Addr("mem", "name"), true},
		{transport.Addr("stdio", "pid 1"), true},
		{transport.Addr("stream", "remote"), false},
		{transport.Addr("http", "127.0.0.1"), false},
		{transport.Addr("websocket", "unknown"), false},
	} {
		require.Equal(t, c.here, transport.IsHere(c.addr), "%v", c.addr)
	}
}
