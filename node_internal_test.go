package asterisque

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/call"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// TestKept_Closed checks that a closed set accepts no elements.
func TestKept_Closed(t *testing.T) {
	var k closers[int]
	require.Empty(t, k.list())
	require.True(t, k.Add(1))
	require.True(t, k.Add(2))
	require.True(t, k.Add(2), "it is a set")
	k.Remove(1)
	k.Remove(3)
	require.Equal(t, []int{2}, k.list())
	require.False(t, k.IsClosed())
	require.Equal(t, []int{2}, k.close())
	require.True(t, k.IsClosed())
	require.False(t, k.Add(4))
	require.Equal(t, []int{2}, k.close(), "until it is removed")
	k.Remove(2)
	require.Empty(t, k.close())
}

// carriedFrom begins n sessions from an address, and returns how many were admitted.
func carriedFrom(a *admission.Control, address string, n int) (in int) {
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
	for range n {
		if p, refused := a.Enter(at, nil); refused == nil && p.Carry() == nil {
			in++
		}
	}
	return in
}

// TestAdmission_Defaults checks the default bounds of sessions, of an address and in all.
func TestAdmission_Defaults(t *testing.T) {
	cfg, err := newConfig(nil)
	require.NoError(t, err)
	a := admission.New(cfg.door())
	require.Equal(t, 10_000, carriedFrom(a, "192.0.2.1:1", 10_001))
	require.Equal(t, 10_000, carriedFrom(a, "[2001:db8::1]:1", 5_000)+carriedFrom(a, "[2001:db8::2]:1", 5_001), "a /64 is one address")
	require.Equal(t, 10_001, carriedFrom(a, "127.0.0.1:1", 10_001), "a proxy may be there")
	require.Equal(t, 10_001, carriedFrom(a, "[::1]:1", 10_001))
	require.Equal(t, 59_998, carriedFrom(a, "[::ffff:127.0.0.2]:1", 70_000), "100,000 in all")
	require.Zero(t, carriedFrom(a, "192.0.2.3:1", 1))
}

// numbers calls f for every number in v, with its path.
func numbers(v reflect.Value, path string, f func(path string, n reflect.Value)) {
	if v.Kind() != reflect.Struct {
		f(path, v)
		return
	}
	for i := range v.NumField() {
		numbers(v.Field(i), path+"."+v.Type().Field(i).Name, f)
	}
}

// TestNodeStats_TotalComplete sets every number of a session, and looks for it in the total.
func TestNodeStats_TotalComplete(t *testing.T) {
	var one, total Stats
	numbers(reflect.ValueOf(&one).Elem(), "", func(_ string, n reflect.Value) { n.Set(reflect.ValueOf(3).Convert(n.Type())) })
	one.Path = Path{} // a node has many paths
	total.add(&one)
	require.Equal(t, one, total, "the sum over one session")
	total.add(&one)
	highest := map[string]bool{
		".MostWaiting": true, ".MostRunning": true, ".MostInbound.Messages": true, ".MostInbound.Bytes": true,
		".MostOutbound.Messages": true, ".MostOutbound.Bytes": true, ".InboundState": true, ".OutboundState": true,
	}
	numbers(reflect.ValueOf(total), "", func(path string, n reflect.Value) {
		want := 6
		switch {
		case highest[path]:
			want = 3
		case strings.HasPrefix(path, ".Path."):
			want = 0
		}
		require.EqualValues(t, want, n.Convert(reflect.TypeFor[int]()).Int(), path)
	})

	stays := map[string]bool{
		".Made": true, ".Served": true, ".Stops": true, ".Stopped": true,
		".WaitPlace.Times": true, ".WaitPlace.For": true,
		".WaitWindow.Times": true, ".WaitWindow.For": true, ".WaitOpens.Times": true, ".WaitOpens.For": true,
		".WaitOutbound.Times": true, ".WaitOutbound.For": true,
	}
	one.end()
	numbers(reflect.ValueOf(one), "", func(path string, n reflect.Value) {
		require.Equal(t, stays[path], !n.IsZero(), "%s of a session that has ended", path)
	})
}

// TestUptime_AgreesWithClock converts moments of the uptime to times of the clock.
func TestUptime_AgreesWithClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := call.Clock{Born: time.Now()}
		require.Positive(t, u.Now(), "also at once")
		require.Equal(t, time.Now(), u.TimeAt(u.Now()))
		fakeclock.Sleep(time.Hour)
		require.Equal(t, time.Now(), u.TimeAt(u.Now()))
	})
}

// TestPeer_QuotaName checks that only a verified certificate and a Subject prove an identity.
func TestPeer_QuotaName(t *testing.T) {
	cert := &x509.Certificate{RawSubjectPublicKeyInfo: []byte("key")}
	shown := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	verified := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	addr := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	for _, c := range []struct {
		name string
		peer Peer
		want string // prefix of the proof
	}{
		{"an address", Peer{RemoteAddr: addr}, ""},
		{"a certificate that was not verified", Peer{RemoteAddr: addr, TLS: shown}, ""},
		{"a certificate that was", Peer{RemoteAddr: addr, TLS: verified}, "key "},
		{"a Subject beside a certificate", Peer{RemoteAddr: addr, TLS: verified, Subject: "alice"}, "subject alice"},
	} {
		proof := c.peer.quotaName().Proof
		require.True(t, strings.HasPrefix(proof, c.want) && (c.want == "") == (proof == ""), "%s: %q", c.name, proof)
	}
}
