package transport_test

import (
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire/transport"
)

func TestAddrURL(t *testing.T) {
	for _, c := range []struct {
		scheme string
		addr   net.Addr
		want   string
		dial   string // the address that is dialled again; "": none
	}{
		{"tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5330}, "tcp://127.0.0.1:5330", "127.0.0.1:5330"},
		{"tls", &net.TCPAddr{IP: net.IPv6unspecified, Port: 1}, "tls://[::]:1", "[::]:1"},
		{"tcp", &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 5330, Zone: "eth0"}, "tcp://[fe80::1%25eth0]:5330", "[fe80::1%eth0]:5330"},
		{"quic", &net.UDPAddr{IP: net.ParseIP("fe80::1"), Port: 5330, Zone: "Ethernet 2"}, "quic://[fe80::1%25Ethernet%202]:5330", "[fe80::1%Ethernet 2]:5330"},
		{"smux+tls", &net.TCPAddr{IP: net.ParseIP("fe80::1"), Port: 5330, Zone: "en0"}, "smux+tls://[fe80::1%25en0]:5330", "[fe80::1%en0]:5330"},
		{"classic", transport.Addr("tcp", "example.org:5330"), "classic://example.org:5330", "example.org:5330"},
		{"fake", transport.Addr("fake", "somewhere"), "fake://somewhere", ""},
		{"fake", transport.Addr("fake", "/a/b"), "fake:///a/b", ""},
	} {
		got := transport.AddrURL(c.scheme, c.addr)
		require.Equal(t, c.want, got)
		u, err := url.Parse(got)
		require.NoError(t, err)
		if c.dial != "" {
			address, err := transport.HostPort(u, true)
			require.NoError(t, err)
			require.Equal(t, c.dial, address)
		}
	}
}
