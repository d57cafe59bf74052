package attack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// remoteWire reports another remote address than that of its connection.
type remoteWire struct {
	wire.Wire
	from net.Addr
}

func (w remoteWire) RemoteAddr() net.Addr { return w.from }

// from returns a Wire to node that reports address as its remote address; node accepts the Wire.
func from(t *testing.T, node *asterisque.Node, address string) (wire.Wire, <-chan error) {
	t.Helper()
	here, there := wire.Pipe()
	t.Cleanup(func() { here.Close() })
	accepted := make(chan error, 1)
	at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))
	go func() {
		_, err := node.Accept(testkit.Background, remoteWire{there, at})
		accepted <- err
	}()
	return here, accepted
}

// If too many connections are half open, those of the address with the most places are closed.
func TestPlaces_BusiestAddress(t *testing.T) {
	node := testkit.NewNode(t, asterisque.WithAdmission(asterisque.Admission{HalfOpen: 8}), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Minute}))
	var crowd []<-chan error
	for i := range 6 {
		_, accepted := from(t, node, fmt.Sprintf("[2001:db8::%x]:1", i+1)) // one /64
		crowd = append(crowd, accepted)
	}
	var others []<-chan error
	for i := range 5 {
		_, accepted := from(t, node, fmt.Sprintf("192.0.2.%d:1", i+1))
		others = append(others, accepted)
	}
	lost := 0
	require.Eventually(t, func() bool {
		for i, c := range crowd {
			select {
			case err := <-c:
				require.ErrorIs(t, err, asterisque.ErrOverloaded)
				require.ErrorContains(t, err, "Admission.HalfOpen")
				lost, crowd[i] = lost+1, nil
			default:
			}
		}
		return lost == 3
	}, testkit.Patience, time.Millisecond)
	for _, c := range others {
		require.Empty(t, c, "an address with few places keeps them")
	}
}

// Sessions are bounded per address and per node only if the options say so.
func TestPlaces_Defaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		opts    []asterisque.Option
		address string
		bounded bool
	}{
		{"an address, as set", []asterisque.Option{asterisque.WithAdmission(asterisque.Admission{PerAddress: 1})}, "192.0.2.1:1", true},
		{"IPv6 by /64", []asterisque.Option{asterisque.WithAdmission(asterisque.Admission{PerAddress: 1})}, "[2001:db8::1]:1", true},
		{"loopback, as set", []asterisque.Option{asterisque.WithAdmission(asterisque.Admission{PerAddress: 1})}, "127.0.0.1:1", true},
		{"loopback of IPv6, as set", []asterisque.Option{asterisque.WithAdmission(asterisque.Admission{PerAddress: 1})}, "[::1]:1", true},
		{"the node", []asterisque.Option{asterisque.WithAdmission(asterisque.Admission{Sessions: 1})}, "192.0.2.1:1", true},
		{"neither", []asterisque.Option{asterisque.WithAdmission(asterisque.Admission{Sessions: -1, PerAddress: -1})}, "192.0.2.1:1", false},
		{"by default", nil, "192.0.2.1:1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := testkit.NewNode(t, c.opts...)
			first, accepted := from(t, node, c.address)
			(&testkit.RawPeer{T: t, W: first}).Send(testkit.Hello())
			require.NoError(t, <-accepted)
			second, accepted := from(t, node, c.address)
			if !c.bounded {
				(&testkit.RawPeer{T: t, W: second}).Send(testkit.Hello())
				require.NoError(t, <-accepted)
				return
			}
			require.ErrorIs(t, <-accepted, asterisque.ErrOverloaded, "at once: it has said nothing")
			require.Eventually(t, func() bool { _, err := second.ReadFrame(1 << 10); return err != nil }, testkit.Patience, time.Millisecond)
			first.Close()
			require.Eventually(t, func() bool {
				next, accepted := from(t, node, c.address)
				(&testkit.RawPeer{T: t, W: next}).W.WriteFrames([][]byte{testkit.Hello().AppendTo(nil)})
				return <-accepted == nil
			}, testkit.Patience, time.Millisecond, "its place is free again")
		})
	}
}

// Silent connections of one address, opened as fast as possible, do not exclude honest ones beside
// them that take 50 ms for each step.
func TestAttackDials_Silent(t *testing.T) {
	t.Parallel()
	for _, honest := range []string{"127.0.0.1", "127.0.0.2"} {
		t.Run("honest ones at "+honest, func(t *testing.T) {
			t.Parallel()
			node := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()))
			url := testkit.Listen(t, node, "tcp://127.0.0.1:0", wire.Options{})
			address := url[len("tcp://"):]
			dial := func() (net.Conn, error) { return net.Dial("tcp", address) }
			stop := attack.Silent(dial, "")
			in := honestDials(t, honest, address)
			dials := stop()
			attack.Bounded(t, "silent dials beside, honest handshakes that failed", 20-in, 0)
			require.Greater(t, dials, 20)
		})
	}
}

// TestAttackDials_HonestBeside runs the attack in a synctest bubble, where a handshake takes only
// the delay of its packets. While the number of dials within that time is below the number of
// places, no handshake of an honest peer fails.
func TestAttackDials_HonestBeside(t *testing.T) {
	for _, honest := range []string{"192.0.2.1:1", "192.0.2.2:1"} {
		t.Run("honest ones at "+honest, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := testkit.NewNode(t, asterisque.WithService(testkit.EchoService()), asterisque.WithAdmission(asterisque.Admission{HalfOpen: 128}))
				here := testkit.NewNode(t)
				ctx, stop := context.WithCancel(testkit.Background)
				var silent sync.WaitGroup
				var lost []<-chan error
				silent.Go(func() {
					for tick := time.NewTicker(750 * time.Microsecond); ctx.Err() == nil; <-tick.C {
						_, accepted := from(t, node, "192.0.2.1:1")
						lost = append(lost, accepted)
					}
				})
				lane := wiretest.Lane{Delay: 50 * time.Millisecond}
				for range 20 {
					a, b := wiretest.NewLink(wiretest.LinkConfig{Out: lane, In: lane}).Pipe()
					at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(honest))
					// The goroutine ends with the handshake.
					go node.Accept(testkit.Background, remoteWire{wire.FromConn(b), at})
					s, err := here.Attach(testkit.Background, wire.FromConn(a))
					require.NoError(t, err)
					_, err = testkit.Echo.Call(testkit.Background, s, "honest")
					require.NoError(t, err)
					s.Close()
				}
				stop()
				silent.Wait()
				require.ErrorIs(t, <-lost[0], asterisque.ErrOverloaded, "places were short")
			})
		})
	}
}

// honestDials makes 20 connections, one after the other, with a delay of 50 ms, and returns how
// many became working sessions.
func honestDials(t *testing.T, from, to string) (in int) {
	here := testkit.NewNode(t)
	return attack.Honest(t, 20, 1, func() error {
		c, err := attack.DialFrom(from, to)
		if err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a long path
		s, err := here.Attach(testkit.Background, wire.FromConn(c))
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = testkit.Echo.Call(testkit.Background, s, "honest")
		return err
	})
}

// The number of concurrent Accept callbacks is bounded by HalfOpen.
func TestAccept_HalfOpenBound(t *testing.T) {
	var running, most atomic.Int64
	node := testkit.NewNode(t, asterisque.WithAdmission(asterisque.Admission{HalfOpen: 4}), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Minute}), asterisque.WithAccess(asterisque.Access{Accept: func(ctx context.Context, _ asterisque.Peer) (*asterisque.Grant, error) {
		n := running.Add(1)
		defer running.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		select {
		case <-ctx.Done():
		case <-t.Context().Done():
		}
		return nil, errors.New("no answer")
	}}))
	var all []<-chan error
	for i := range 100 {
		w, accepted := from(t, node, fmt.Sprintf("192.0.2.%d:1", i+1))
		w.WriteFrames([][]byte{testkit.Hello().AppendTo(nil)})
		all = append(all, accepted)
	}
	over := 0
	require.Eventually(t, func() bool {
		for i, c := range all {
			select {
			case err := <-c:
				require.ErrorIs(t, err, asterisque.ErrOverloaded, "the place that it had is another's")
				over, all[i] = over+1, nil
			default:
			}
		}
		return over == 96 && running.Load() == 4
	}, testkit.Patience, time.Millisecond)
	attack.Bounded(t, "calls of Access.Accept that run at once", int(most.Load()), 4)
}

// Many handshakes are completed at the same time.
func TestAttackDials_Together(t *testing.T) {
	node := testkit.NewNode(t, asterisque.WithAdmission(asterisque.Admission{Sessions: 3}), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Minute}))
	var wires []wire.Wire
	var all []<-chan error
	for i := range 50 {
		w, accepted := from(t, node, fmt.Sprintf("192.0.2.%d:1", i+1))
		wires, all = append(wires, w), append(all, accepted)
	}
	for _, w := range wires {
		w.WriteFrames([][]byte{testkit.Hello().AppendTo(nil)}) // which may be closed already
	}
	in := 0
	for _, accepted := range all {
		if err := <-accepted; err == nil {
			in++
		} else {
			require.ErrorContains(t, err, "Admission.Sessions")
		}
	}
	attack.Bounded(t, "sessions of 50 handshakes that are completed together", in, 3)
	require.Equal(t, 3, in)
}

// A session is resumed although no new ones are allowed. The old Wire is dead, and seems alive: it
// counts until its session continues over another one.
func TestPlaces_ResumeBeyond(t *testing.T) {
	for name, bound := range map[string]asterisque.Option{"of an address": asterisque.WithAdmission(asterisque.Admission{PerAddress: 1}), "of a node": asterisque.WithAdmission(asterisque.Admission{Sessions: 1})} {
		t.Run(name, func(t *testing.T) {
			node := testkit.NewNode(t, bound, asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAccess(asterisque.Access{PlainCredentials: true}))
			w, accepted := from(t, node, "192.0.2.1:1")
			dead := &testkit.RawPeer{T: t, W: w}
			dead.Send(testkit.Resumable())
			has := dead.Control().(message.Sync)
			require.NoError(t, <-accepted)
			for range 3 {
				w, accepted = from(t, node, "192.0.2.1:2")
				back := &testkit.RawPeer{T: t, W: w}
				back.Send(testkit.Resuming(has, 0))
				answer := back.Control().(message.Sync)
				require.Equal(t, has.Session, answer.Session)
				require.NoError(t, <-accepted)
				has = answer
			}
			w, accepted = from(t, node, "192.0.2.1:3")
			(&testkit.RawPeer{T: t, W: w}).Send(testkit.Hello())
			require.ErrorIs(t, <-accepted, asterisque.ErrOverloaded)
		})
	}
}

// onMany makes node admit a connection with many wires. lost receives a token when node requests
// its end.
func onMany(t *testing.T, node *asterisque.Node, address string) (p transport.Place, lost chan struct{}) {
	lost = make(chan struct{}, 1)
	p, err := node.Enter(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)), func() { lost <- struct{}{} })
	require.NoError(t, err)
	t.Cleanup(p.Leave)
	return p, lost
}

// admittedWire has been admitted by the node already.
type admittedWire struct {
	wire.Wire
	place transport.Place
}

func (w admittedWire) Place() transport.Place { return w.place }

// sessionOn begins a session on a connection with many wires.
func sessionOn(t *testing.T, node *asterisque.Node, connection transport.Place) *asterisque.Session {
	t.Helper()
	here, there := wire.Pipe()
	p, err := connection.Enter(func() { there.Close() })
	require.NoError(t, err)
	(&testkit.RawPeer{T: t, W: here}).Send(testkit.Hello())
	s, err := node.Accept(testkit.Background, admittedWire{there, p})
	require.NoError(t, err)
	return s
}

// A peer with many wires that never become sessions is disconnected, even beside a session.
func TestWires_UselessOnesCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := testkit.NewNode(t)
		p, lost := onMany(t, node, "192.0.2.1:1")
		sessionOn(t, node, p)
		tries := 0
		for ; len(lost) == 0 && tries < 2000; tries++ {
			if w, err := p.Enter(func() {}); err == nil {
				w.Leave()
			} else if tries >= 1024 {
				<-lost // which runs on a goroutine of its own
				break
			}
		}
		attack.Bounded(t, "wires of one connection that came to nothing", tries, 1024)
	})
}

// A session excuses the wires before it.
func TestWires_EarlierExcused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := testkit.NewNode(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Minute}))
		p, _ := onMany(t, node, "192.0.2.1:1")
		for range 3 {
			for range 1000 {
				w, err := p.Enter(func() {})
				require.NoError(t, err)
				w.Leave()
			}
			sessionOn(t, node, p)
		}
	})
}

// A connection with many wires counts once for its address, not beside its wires.
func TestConnection_ManyWires(t *testing.T) {
	node := testkit.NewNode(t, asterisque.WithAdmission(asterisque.Admission{PerAddress: 2}))
	one, _ := onMany(t, node, "192.0.2.1:1")
	other, _ := onMany(t, node, "192.0.2.1:2")
	_, err := one.Enter(func() {})
	require.NoError(t, err)
	_, err = other.Enter(func() {})
	require.NoError(t, err, "two connections, and a Wire on each")
	_, err = other.Enter(func() {})
	require.ErrorIs(t, err, asterisque.ErrOverloaded)
}
