package pool

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

func TestDNS_Port(t *testing.T) {
	for _, test := range []struct{ url, network, question, serverName string }{
		{"tls://orders.example.com:5330", "", "ip orders.example.com", "orders.example.com"},
		{"tls://orders.example.com:5330", "ip", "ip orders.example.com", "orders.example.com"},
		{"tls://orders.example.com:5330", "ip4", "ip4 orders.example.com", "orders.example.com"},
		{"tcp://orders:5330", "ip6", "ip6 orders", "orders"},
		{"tls://orders.example.com.:5330", "", "ip orders.example.com.", "orders.example.com"},
		{"tls://orders.example.com", "", "SRV asterisque tcp orders.example.com", "orders.example.com"},
		{"tls://orders.example.com:", "", "SRV asterisque tcp orders.example.com", "orders.example.com"},
		{"tls://_rpc._udp.example.com", "", "SRV   _rpc._udp.example.com", "example.com"},
	} {
		dns := &fakeDNS{records: []*net.SRV{{Target: "a", Port: 1}}, addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}}
		set, err := first(t, DNS(test.url, DNSConfig{Lookup: dns, Network: test.network}))
		require.NoError(t, err)
		require.Equal(t, []string{test.question}, dns.questions)
		require.Equal(t, test.serverName, set[0].ServerName)
	}
}

func TestDNS_Addresses(t *testing.T) {
	for url, want := range map[string]map[string]string{
		"tls://orders:5330": {
			"10.0.0.7":              "tls://10.0.0.7:5330",
			"::ffff:10.0.0.7":       "tls://10.0.0.7:5330",
			"2001:db8::7":           "tls://[2001:db8::7]:5330",
			"fe80::1%eth0":          "tls://[fe80::1%25eth0]:5330",
			"::1":                   "tls://[::1]:5330",
			"2001:DB8:0:0:0:0:0:07": "tls://[2001:db8::7]:5330",
		},
		"tcp://orders:1/path%2Fof?token=t#f": {"10.0.0.7": "tcp://10.0.0.7:1/path%2Fof?token=t#f"},
		"tcp://me:secret@orders:1":           {"10.0.0.7": "tcp://me:secret@10.0.0.7:1"},
	} {
		for ip, wantURL := range want {
			dns := &fakeDNS{}
			dns.answer(ip)
			set, err := first(t, DNS(url, DNSConfig{Lookup: dns}))
			require.NoError(t, err)
			require.Equal(t, []Address{{URL: wantURL, ServerName: "orders"}}, set)
		}
	}
}

func TestDNS_LowestPriority(t *testing.T) {
	dns := &fakeDNS{records: []*net.SRV{
		{Target: "spare.example.com.", Port: 5330, Priority: 20},
		{Target: "B.example.com.", Port: 5331, Priority: 10, Weight: 1},
		{Target: "a.example.com.", Port: 5330, Priority: 10, Weight: 100},
		{Target: "a.example.com", Port: 5330, Priority: 10}, // again
		{Target: ".", Port: 0, Priority: 30},
	}}
	set, err := first(t, DNS("tls://orders.example.com", DNSConfig{Lookup: dns}))
	require.NoError(t, err)
	require.Equal(t, []Address{
		{URL: "tls://a.example.com:5330", ServerName: "orders.example.com"},
		{URL: "tls://b.example.com:5331", ServerName: "orders.example.com"},
	}, set)
}

func TestDNS_IPAddress(t *testing.T) {
	for _, url := range []string{"tls://10.0.0.7:5330", "tls://[::1]:5330", "tls://[fe80::1%25eth0]:5330", "tls://[::ffff:10.0.0.7]:5330"} {
		dns := &fakeDNS{}
		all := only(t, DNS(url, DNSConfig{Lookup: dns}))
		require.Equal(t, []yielded{{set: []Address{{URL: url}}}}, all)
		require.Empty(t, dns.questions)
	}
}

func TestDNS_BadURL(t *testing.T) {
	for url, want := range map[string]string{
		"":                           "no scheme",
		"orders":                     "no scheme",
		"orders.example.com:5330":    "the scheme of",
		"smoke://orders:5330":        "known are mem, tcp, tls, unix",
		"tls:orders:5330":            "the name is missing; for example tls://",
		"tls://:5330":                "the name is missing",
		"tls://.:5330":               "the name is missing",
		"unix:///run/orders.sock":    "the name is missing",
		"tls://orders:0":             "the port has to be 1 to 65535",
		"tls://orders:65536":         "the port has to be 1 to 65535",
		"tls://orders:x":             "no URL",
		"tls://10.0.0.7":             "an IP address needs a port",
		"tls://[::1]":                "an IP address needs a port",
		"tls://_rpc._tcp.orders:530": "SRV records have the port: leave it away",
		"tls://_rpc._tcp":            "the name is missing",
		"tls://me:hunter22 @orders":  "no URL",
		"tls://me:hunter22@:5330":    "the name is missing",
	} {
		t.Run(url, func(t *testing.T) {
			dns := &fakeDNS{}
			all := only(t, DNS(url, DNSConfig{Lookup: dns}))
			require.Len(t, all, 1)
			require.Nil(t, all[0].set)
			require.ErrorIs(t, all[0].err, asterisque.ErrUnavailable)
			require.ErrorIs(t, all[0].err, wire.ErrURL)
			require.ErrorContains(t, all[0].err, want)
			require.NotContains(t, all[0].err.Error(), "hunter22")
			require.Empty(t, dns.questions)
		})
	}
}

func TestDNS_BadNetwork(t *testing.T) {
	for _, network := range []string{"tcp", "ip5", "IP4"} {
		all := only(t, DNS(orders, DNSConfig{Lookup: &fakeDNS{}, Network: network}))
		require.Len(t, all, 1)
		require.ErrorIs(t, all[0].err, asterisque.ErrUnavailable)
		require.ErrorContains(t, all[0].err, fmt.Sprintf("DNSConfig.Network is %q", network))
	}
}

func TestDNS_EmptyAnswer(t *testing.T) {
	many := make([]netip.Addr, mostAddresses+1)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	const records, addresses = "tls://me:hunter22@orders", "tls://me:hunter22@orders:5330"
	for name, test := range map[string]struct {
		url  string
		dns  *fakeDNS
		want string
	}{
		"no addresses":      {addresses, &fakeDNS{}, "DNS has no servers for tls://orders:5330: its answer was empty"},
		"no records":        {records, &fakeDNS{}, "DNS has no servers for tls://orders: its answer was empty"},
		"not there":         {records, &fakeDNS{records: []*net.SRV{{Target: "."}}}, "the service is not there"},
		"no port":           {records, &fakeDNS{records: []*net.SRV{{Target: "a"}}}, `host "a", port 0`},
		"a nil record":      {records, &fakeDNS{records: []*net.SRV{{Target: "a", Port: 1}, nil}}, "nil record"},
		"no name of a host": {records, &fakeDNS{records: []*net.SRV{{Target: "a b/?", Port: 1}}}, "cannot be used"},
		"no address":        {addresses, &fakeDNS{addresses: make([]netip.Addr, 1)}, "not the address of a server"},
		"0.0.0.0":           {addresses, &fakeDNS{addresses: []netip.Addr{netip.IPv4Unspecified()}}, "0.0.0.0 is not the address of a server"},
		"::":                {addresses, &fakeDNS{addresses: []netip.Addr{netip.IPv6Unspecified()}}, ":: is not the address of a server"},
		"multicast":         {addresses, &fakeDNS{addresses: []netip.Addr{netip.MustParseAddr("224.0.0.1")}}, "224.0.0.1"},
		"too many":          {addresses, &fakeDNS{addresses: many}, "1025 servers, and at most 1024"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := first(t, DNS(test.url, DNSConfig{Lookup: test.dns}))
			require.Nil(t, set)
			require.ErrorIs(t, err, asterisque.ErrUnavailable)
			require.ErrorContains(t, err, test.want)
			require.ErrorContains(t, err, "tls://orders", "the error says of which name it is")
			require.NotContains(t, err.Error(), "hunter22")
		})
	}
}

func TestDNS_MostServers(t *testing.T) {
	dns := &fakeDNS{}
	for i := range mostAddresses {
		dns.addresses = append(dns.addresses, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	set, err := first(t, DNS(orders, DNSConfig{Lookup: dns}))
	require.NoError(t, err)
	require.Len(t, set, mostAddresses)
}
