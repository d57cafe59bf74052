package asterisque

import (
	"crypto/tls"
	"crypto/x509"
	"math"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwner_ProofOrAddress checks that owners are distinguished by their proof, or else by their
// address.
func TestOwner_ProofOrAddress(t *testing.T) {
	at := func(addr string) Peer {
		a, err := net.ResolveTCPAddr("tcp", addr)
		require.NoError(t, err)
		return Peer{RemoteAddr: a}
	}
	cert := &x509.Certificate{RawSubjectPublicKeyInfo: []byte("key")}
	shown := at("192.0.2.1:1000")
	shown.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
	proved := at("192.0.2.9:1000")
	proved.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}, VerifiedChains: [][]*x509.Certificate{{cert}}}
	subject := proved
	subject.Subject = "alice"
	elsewhere := at("203.0.113.5:1")
	elsewhere.Subject = "alice"
	for _, c := range []struct {
		name   string
		a, b   Peer
		same   bool
		proved bool // of the owner of a
	}{
		{"two ports of one address", at("192.0.2.1:1000"), at("192.0.2.1:2000"), true, false},
		{"two addresses", at("192.0.2.1:1000"), at("192.0.2.2:1000"), false, false},
		{"two addresses of a /64", at("[2001:db8::1]:1000"), at("[2001:db8::ffff:2]:1000"), true, false},
		{"two /64", at("[2001:db8:0:1::1]:1000"), at("[2001:db8:0:2::1]:1000"), false, false},
		{"an address written as one of version 6", at("[::ffff:192.0.2.1]:1000"), at("192.0.2.1:1000"), true, false},
		{"two that cross no network", Peer{RemoteAddr: &net.UnixAddr{Name: "@"}}, Peer{RemoteAddr: &net.UnixAddr{Name: "@"}}, true, false},
		{"two link-local addresses of one interface", at("[fe80::1]:1"), at("[fe80::2]:1"), true, false},
		{"a certificate that was not verified", shown, at("192.0.2.1:1000"), true, false},
		{"a certificate that was", proved, at("192.0.2.9:1000"), false, true},
		{"a Subject beside a certificate", subject, proved, false, true},
		{"a Subject at two addresses", subject, elsewhere, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all owners
			a, b := all.join(&c.a), all.join(&c.b)
			require.Equal(t, c.same, a == b)
			require.Equal(t, c.proved, a.proved())
			all.release(a)
			if c.same {
				require.Same(t, b, all.join(&c.a), "as long as one session knows it")
				all.release(b)
			}
			all.release(b)
			require.Empty(t, all.all)
		})
	}
}

// TestBudget_FairShare compares fair shares with a table (max-min fairness).
func TestBudget_FairShare(t *testing.T) {
	for _, c := range []struct {
		held        []int
		total, want int
	}{
		{nil, 100, math.MaxInt},
		{[]int{10, 20}, 100, math.MaxInt},
		{[]int{200}, 100, 100},
		{[]int{200, 300}, 100, 50},
		{[]int{300, 10, 0}, 100, 90},
		{[]int{40, 30, 200, 10}, 100, 30},
		{[]int{0, 0, 0, 101}, 100, 100},
	} {
		require.Equal(t, c.want, fairShare(c.held, c.total), "%v of %d", c.held, c.total)
	}
}

// TestTurns_OwnersAlternate checks that owners take turns.
func TestTurns_OwnersAlternate(t *testing.T) {
	var q turns[int]
	a, b, c := new(owner), new(owner), new(owner)
	for i := range 4 {
		q.push(a, 10+i)
	}
	q.push(b, 20)
	q.push(c, 30)
	q.push(c, 31)
	q.push(b, 21)
	require.Equal(t, 8, q.len())
	q.remove(c, func(v *int) bool { return *v != 30 })
	q.remove(new(owner), func(*int) bool { return false })
	got := []int{q.pop(), q.pop(), q.pop(), q.pop()}
	require.Equal(t, []int{10, 20, 31, 11}, got)
	q.push(c, 32)
	q.remove(b, func(*int) bool { return false })
	got = nil
	for q.len() > 0 {
		got = append(got, q.pop())
	}
	require.Equal(t, []int{12, 32, 13}, got)
	require.Empty(t, q.waiting)
}

// TestReserve_Threshold checks that a remainder is left, as large as the places of one owner.
func TestReserve_Threshold(t *testing.T) {
	var all owners
	r := reserve{most: 100, owners: &all}
	a := all.join(&Peer{Subject: "a"})
	b := all.join(&Peer{Subject: "b"})
	fill := func(w *owner) (n int) {
		for r.enter(w) {
			n++
		}
		return n
	}
	require.Equal(t, 50, fill(a))
	require.Equal(t, 25, fill(b))
	require.Zero(t, fill(a))
	for range 50 {
		r.leave(a)
	}
	require.Equal(t, 25, fill(b), "as many as are left")
	require.EqualValues(t, 50, r.held.Load())
	require.EqualValues(t, 50, b.nested.Load())
	all.release(b)
	require.Same(t, b, all.join(&Peer{Subject: "b"}), "who has places is not forgotten with its last session")
	all.release(b)
	for range 50 {
		r.leave(b)
	}
	require.Len(t, all.all, 1)
}

// TestBudget_Default checks that the default is a part of the memory.
func TestBudget_Default(t *testing.T) {
	require.Positive(t, defaultBudget())
	if m := machineMemory(); m > 0 {
		require.LessOrEqual(t, int64(defaultBudget()), m/4)
	}
}
