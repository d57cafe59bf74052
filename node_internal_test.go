package asterisque

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"net"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/limits"
)

// TestKept_Closed checks that a closed set accepts no elements.
func TestKept_Closed(t *testing.T) {
	var k closers[int]
	require.Empty(t, k.list())
	require.True(t, k.add(1))
	require.True(t, k.add(2))
	require.True(t, k.add(2), "it is a set")
	k.remove(1)
	k.remove(3)
	require.Equal(t, []int{2}, k.list())
	require.False(t, k.isClosed())
	require.Equal(t, []int{2}, k.close())
	require.True(t, k.isClosed())
	require.False(t, k.add(4))
	require.Equal(t, []int{2}, k.close(), "until it is removed")
	k.remove(2)
	require.Empty(t, k.close())
}

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

// TestHandshake_States compares the transitions with a table.
func TestHandshake_States(t *testing.T) {
	events := []handshakeEvent{answers, agrees, rejects, timeOver, placeLost, nodeCloses}
	// final states
	over := []handshakeState{agreed, rejected, timedOut, displaced, abandoned}
	const never = handshakeState(99)
	table := map[handshakeState][]handshakeState{ // by event; never: the event comes too late
		exchanging: {answering, agreed, rejected, timedOut, displaced, abandoned},
		answering:  {never, agreed, rejected, timedOut, displaced, abandoned},
	}
	for _, s := range over {
		table[s] = []handshakeState{never, never, never, never, never, never}
	}
	for from, row := range table {
		for i, e := range events {
			t.Run(fmt.Sprint(from, " ", e), func(t *testing.T) {
				want, inTime := row[i], row[i] != never
				if !inTime {
					want = from
				}
				got, ok := from.next(e)
				require.Equal(t, inTime, ok)
				require.Equal(t, want, got)

				var h handshakeStatus
				h.state.Store(uint32(from))
				require.Equal(t, inTime, h.move(e))
				require.Equal(t, want, h.now())
			})
		}
	}
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
		u := uptime{born: time.Now()}
		require.Positive(t, u.now(), "also at once")
		require.Equal(t, time.Now(), u.timeAt(u.now()))
		fakeclock.Sleep(time.Hour)
		require.Equal(t, time.Now(), u.timeAt(u.now()))
	})
}

// TestBudget_NineEighths admits a peer that holds nothing up to nine eighths of the budget, and a
// peer above its share only up to the budget.
func TestBudget_NineEighths(t *testing.T) {
	const most = 800
	peer := func(ip byte) *Peer { return &Peer{RemoteAddr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, ip)}} }
	for _, c := range []struct {
		held            int
		greedy, another bool // admitted
	}{
		{most, true, true},
		{most + 1, false, true},
		{most + most/8, false, true},
		{most + most/8 + 1, false, false},
	} {
		var all quotaOwners
		all.total = limits.NewTally(most)
		b := memoryBudget{Tally: all.total, owners: &all}
		all.join(peer(1)).tally.Add(c.held)
		for p, in := range map[*Peer]bool{peer(1): c.greedy, peer(2): c.another} {
			if err := b.refusesSession(p); in {
				require.NoError(t, err, "%d bytes are held", c.held)
			} else {
				require.ErrorIs(t, err, codec.ErrOverloaded, "%d bytes are held", c.held)
			}
		}
	}
}

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
			var all quotaOwners
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
	var q fairQueue[int]
	a, b, c := new(quotaOwner), new(quotaOwner), new(quotaOwner)
	for i := range 4 {
		q.push(a, 10+i)
	}
	q.push(b, 20)
	q.push(c, 30)
	q.push(c, 31)
	q.push(b, 21)
	require.Equal(t, 8, q.len())
	q.remove(c, func(v *int) bool { return *v != 30 })
	q.remove(new(quotaOwner), func(*int) bool { return false })
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
	var all quotaOwners
	r := nestedReserve{most: 100, owners: &all}
	a := all.join(&Peer{Subject: "a"})
	b := all.join(&Peer{Subject: "b"})
	fill := func(w *quotaOwner) (n int) {
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
