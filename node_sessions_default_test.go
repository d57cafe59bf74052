package asterisque

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// carriedFrom begins n sessions from an address, and returns how many were admitted.
func (a *admission) carriedFrom(address string, n int) (in int) {
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
	for range n {
		if p, refused := a.enter(at, nil, nil); refused == nil && p.carry() == nil {
			in++
		}
	}
	return in
}

// TestAdmission_Defaults checks the default bounds of sessions, of an address and in all.
func TestAdmission_Defaults(t *testing.T) {
	cfg, err := newConfig(nil)
	require.NoError(t, err)
	a := newAdmission(cfg.door())
	require.Equal(t, 10_000, a.carriedFrom("192.0.2.1:1", 10_001))
	require.Equal(t, 10_000, a.carriedFrom("[2001:db8::1]:1", 5_000)+a.carriedFrom("[2001:db8::2]:1", 5_001), "a /64 is one address")
	require.Equal(t, 10_001, a.carriedFrom("127.0.0.1:1", 10_001), "a proxy may be there")
	require.Equal(t, 10_001, a.carriedFrom("[::1]:1", 10_001))
	require.Equal(t, 59_998, a.carriedFrom("[::ffff:127.0.0.2]:1", 70_000), "100,000 in all")
	require.Zero(t, a.carriedFrom("192.0.2.3:1", 1))
}
