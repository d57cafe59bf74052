package asterisque

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/smuxwire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// requireEmpty waits until the admission has neither places nor sessions.
func requireEmpty(t *testing.T, a *admission.Control) {
	t.Helper()
	counts := func() []int {
		places, sessions, hosts := a.Counts()
		return []int{places, sessions, hosts}
	}
	for end := time.Now().Add(2 * time.Minute); slices.Max(counts()) > 0 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) //nolint:forbidigo // sockets close on goroutines of their own
	}
	require.Equal(t, make([]int, 3), counts(), "places, sessions, and addresses with one of them")
}

// quietNode is a node without logs.
func quietNode(t *testing.T, opts ...Option) *Node {
	n := NewNode(append(opts, WithLogger(slog.New(slog.DiscardHandler)))...)
	t.Cleanup(func() { n.Close() })
	return n
}

// oddWire is a Wire with a place, perhaps of another node, that panics on demand.
type oddWire struct {
	wire.Wire
	place  transport.Place
	panics string
}

func (w oddWire) Place() transport.Place { return w.place }

func (w oddWire) RemoteAddr() net.Addr {
	switch w.panics {
	case "address":
		panic("no address")
	case "nil":
		return nil
	}
	return w.Wire.RemoteAddr()
}

func (w oddWire) ReadFrame(most int) ([]byte, error) {
	if w.panics == "read" {
		panic("no frame")
	}
	return w.Wire.ReadFrame(most)
}

func syncFrame() []byte {
	return message.Sync{Version: message.Version, Node: []byte("soup"), Codecs: []string{"cbor"}, MaxMessage: 1 << 20}.AppendTo(nil)
}

// TestAdmission_TwoNodes has a session over a Wire with a place at another node: it counts at both.
func TestAdmission_TwoNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, speaksFirst := range []bool{false, true} {
			door, node := quietNode(t, WithTimeouts(Timeouts{Handshake: 50 * time.Millisecond})), quietNode(t)
			here, there := wire.Pipe()
			lost := make(chan struct{})
			p, err := door.Enter(there.RemoteAddr(), func() { close(lost) })
			require.NoError(t, err)
			var s *Session
			if speaksFirst {
				go node.Accept(context.Background(), here) // ends with the handshake
				s, err = door.Attach(context.Background(), oddWire{Wire: there, place: p})
			} else {
				require.NoError(t, here.WriteFrames([][]byte{syncFrame()}))
				s, err = node.Accept(context.Background(), oddWire{Wire: there, place: p})
			}
			require.NoError(t, err)
			places, sessions, _ := door.admission.Counts()
			require.Equal(t, 0, places, "or it would be lost in time")
			require.Equal(t, 1, sessions)
			s.Close()
			requireEmpty(t, door.admission)
			require.Empty(t, lost)
		}
	})
}

// TestAdmission_WirePanics has a Wire that panics in RemoteAddr: only its own handshake fails.
func TestAdmission_WirePanics(t *testing.T) {
	n := quietNode(t)
	here, there := wire.Pipe()
	_, err := n.Accept(context.Background(), oddWire{Wire: there, panics: "address"})
	require.ErrorIs(t, err, ErrUnavailable)
	for err = nil; err == nil; {
		_, err = here.ReadFrame(1 << 10)
	}
	require.True(t, n.shakeApart(context.Background(), oddWire{Wire: there, panics: "address"}))
	requireEmpty(t, n.admission)
}

// Random actions of peers, all at once, release all places in the end.
func TestAttackAdmission_Places(t *testing.T) {
	t.Parallel()
	for _, half := range []int{1, 2, 8} {
		t.Run(fmt.Sprint(half), func(t *testing.T) {
			t.Parallel()
			allPlacesComeBack(t, half)
		})
	}
}

func allPlacesComeBack(t *testing.T, half int) {
	server, client := testtls.Configs(t)
	soon := WithTimeouts(Timeouts{Handshake: 20 * time.Millisecond})
	few := WithAdmission(Admission{HalfOpen: half})
	n := quietNode(t, few, soon, WithTLS(server), WithResume(Resume{For: time.Minute}), WithAccess(Access{PlainCredentials: true}))
	other := quietNode(t, few, soon)
	var urls []string
	for _, scheme := range []string{"tcp", "tls", "smux", "smux+tls"} {
		l, err := wire.Listen(t.Context(), scheme+"://127.0.0.1:0", wire.Options{TLS: server})
		require.NoError(t, err)
		go n.Serve(context.Background(), l) // ends with n
		urls = append(urls, l.URL())
	}
	peer := quietNode(t, WithTLS(client), soon)
	var all sync.WaitGroup
	for i := range 8 {
		random := rand.New(rand.NewPCG(uint64(i), uint64(half)))
		all.Go(func() {
			for range 40 {
				stew(n, other, peer, urls, random)
			}
		})
	}
	all.Wait()
	for _, s := range append(n.Sessions(), other.Sessions()...) {
		s.Close()
	}
	requireEmpty(t, n.admission)
	requireEmpty(t, other.admission)

	for range 20 { // and once more while the node is closed
		all.Go(func() { stew(n, other, peer, urls, rand.New(rand.NewPCG(1, 2))) })
	}
	n.Close()
	other.Close()
	all.Wait()
	requireEmpty(t, n.admission)
	requireEmpty(t, other.admission)
}

// stew performs one random action of a peer, or of the application.
func stew(n, other, peer *Node, urls []string, random *rand.Rand) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(random.IntN(30))*time.Millisecond)
	defer cancel()
	url := urls[random.IntN(len(urls))]
	switch random.IntN(5) {
	case 0: // a short session
		if s, err := peer.Dial(ctx, url); err == nil {
			s.Close()
		}
	case 1: // an unknown protocol, silence, or half a Sync
		c, err := net.Dial("tcp", url[len(url)-len("127.0.0.1:12345"):])
		if err != nil {
			return
		}
		defer c.Close()
		c.Write([]byte([]string{"GET / HTTP/1.1\r\n\r\n", "", "\x00\x00\x00\x40\x01", "\x16\x03\x01\x02\x00", "\x02\x00\x00\x00\x03\x00\x00\x00"}[random.IntN(5)]))
		<-ctx.Done()
	case 2: // many wires on one connection
		if c, err := net.Dial("tcp", urls[2][len("smux://"):]); err == nil {
			stewOnMany(ctx, peer, c, random)
		}
	default:
		stewWithPlace(ctx, n, other, random)
	}
}

func stewOnMany(ctx context.Context, peer *Node, c net.Conn, random *rand.Rand) {
	m, err := smuxwire.Client(c)
	if err != nil {
		return
	}
	defer m.Close()
	for range random.IntN(20) {
		w, err := m.Open(ctx)
		switch {
		case err != nil:
			return
		case random.IntN(2) == 0:
			w.WriteFrames([][]byte{{1, 2, 3}})
		default:
			peer.Attach(ctx, w)
		}
	}
}

// stewWithPlace accepts a Wire that has a place, at this node or at the other one, perhaps twice.
func stewWithPlace(ctx context.Context, n, other *Node, random *rand.Rand) {
	here, there := wire.Pipe()
	defer here.Close()
	nodes := []*Node{n, other}
	p, err := nodes[random.IntN(2)].Enter(there.RemoteAddr(), func() { there.Close() })
	if err != nil {
		return
	}
	defer p.Leave()
	within := p
	if random.IntN(2) == 0 {
		if within, err = p.Enter(func() { there.Close() }); err != nil {
			return
		}
		defer within.Leave()
	}
	w := oddWire{there, within, []string{"", "", "", "address", "nil", "read"}[random.IntN(6)]}
	here.WriteFrames([][]byte{syncFrame()})
	closes := time.AfterFunc(time.Duration(random.IntN(60))*time.Millisecond, func() { here.Close() })
	defer closes.Stop()
	if random.IntN(4) == 0 {
		nodes[random.IntN(2)].Attach(ctx, w)
		return
	}
	one := nodes[random.IntN(2)]
	one.Accept(ctx, w)
	if one == n && random.IntN(2) == 0 {
		one.Accept(ctx, w)
	}
}

// Each connection sends a byte, or an empty frame, every 2 ms: that does not extend its time.
func TestAttackAdmission_Drips(t *testing.T) {
	t.Parallel()
	server, _ := testtls.Configs(t)
	hello := binary.BigEndian.AppendUint32(nil, 1<<10)      // of a frame with a Sync
	record := []byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3} // of TLS
	none := []byte{2, 3, 0, 0, 0, 0, 0, 0}                  // of smux, as below
	open := []byte{2, 0, 0, 0, 3, 0, 0, 0}
	half := append([]byte{2, 2, 4, 0, 3, 0, 0, 0}, hello...)
	one := []byte{2, 2, 1, 0, 3, 0, 0, 0, 0}
	for _, c := range []struct {
		scheme      string
		first, then []byte
	}{
		{"tcp", hello, []byte{0}}, {"tls", record, []byte{0}}, {"smux", none, none},
		{"smux", append(open, half...), one}, {"smux+tls", record, []byte{0}},
	} {
		n := quietNode(t, WithTimeouts(Timeouts{Handshake: 100 * time.Millisecond}))
		l, err := wire.Listen(t.Context(), c.scheme+"://127.0.0.1:0", wire.Options{TLS: server})
		require.NoError(t, err)
		go n.Serve(context.Background(), l) // ends with n
		conn, err := net.Dial("tcp", strings.TrimPrefix(l.URL(), c.scheme+"://"))
		require.NoError(t, err)
		drips := 0
		for _, err = conn.Write(c.first); err == nil && drips < 5000; drips++ {
			time.Sleep(2 * time.Millisecond) //nolint:forbidigo // the attack
			_, err = conn.Write(c.then)
		}
		conn.Close()
		require.Error(t, err, "%s is cut off while it drips", c.scheme)
		requireEmpty(t, n.admission)
	}
}
