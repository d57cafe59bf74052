package resume

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// A resumed session has the current grant of its peer.
func TestResume_CurrentGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testkit.NewDoorkeeper(t)
		p, first := k.Begins(t)
		demoted := asterisque.NewService()
		demoted.Handle(50, "the only one", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, 4000), nil })
		k.Grants(&asterisque.Grant{Service: demoted, Outbound: limits.Limits{Soft: limits.Amount{Bytes: 1000}, Hard: limits.Amount{Bytes: 2000}}}, nil)
		p.W.Close()
		synctest.Wait()
		q, second := testkit.RawTo(t, k.Node, testkit.Resuming(first, 1))
		require.Equal(t, first.Session, second.Session)
		q.Send(&message.Open{Pipe: 2, Function: testkit.Echo.Number(), Params: []byte{0x61, 'x'}})
		require.Equal(t, codec.NoFunction, q.Answer().Abort.Code, "of the service that it had before")
		q.Send(&message.Open{Pipe: 4, Function: 50})
		require.Equal(t, codec.TooLarge, q.Answer().Abort.Code, "by the limits that it has now")
	})
}

// A peer that is no longer admitted loses its session.
func TestResume_NoLongerAdmitted(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*message.Sync)
		ends  bool
	}{
		{"with the secret", func(*message.Sync) {}, true},
		{"a peer without it", func(h *message.Sync) { h.Secret = make([]byte, message.SecretSize) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := testkit.NewDoorkeeper(t)
				_, first := k.Begins(t)
				session := k.Node.Sessions()[0]
				k.Grants(nil, codec.ErrUnauthorized.Withf("you have left the company"))
				h := testkit.Resuming(first, 1)
				c.spoil(&h)
				q := testkit.PipeTo(t, k.Node)
				q.Send(h)
				q.WantSessionClose(codec.Unauthorized, "left the company")
				synctest.Wait()
				require.Equal(t, c.ends, session.Err() != nil)
				if c.ends {
					require.ErrorIs(t, session.Err(), asterisque.ErrUnauthorized)
				}
			})
		})
	}
}

// A mismatch begins a new session, and the old one continues over its wire.
func TestResume_MismatchKeepsWire(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*testkit.Doorkeeper, *message.Sync)
	}{
		{"another Subject", func(k *testkit.Doorkeeper, _ *message.Sync) { k.Grants(&asterisque.Grant{Subject: "somebody"}, nil) }},
		{"another secret", func(_ *testkit.Doorkeeper, h *message.Sync) { h.Secret = make([]byte, message.SecretSize) }},
		{"other codecs", func(_ *testkit.Doorkeeper, h *message.Sync) { h.Codecs = []string{"json", "raw"} }},
		{"a smaller max message", func(_ *testkit.Doorkeeper, h *message.Sync) { h.MaxMessage-- }},
		{"another window", func(_ *testkit.Doorkeeper, h *message.Sync) { h.Window = 1 }},
		{"another overhead", func(_ *testkit.Doorkeeper, h *message.Sync) { h.Overhead = 700 }},
		{"other room for Opens", func(_ *testkit.Doorkeeper, h *message.Sync) { h.Opens = 7 }},
		{"other room for nested calls", func(_ *testkit.Doorkeeper, h *message.Sync) { h.NestedRoom, h.NestedCalls = 7000, 7 }},
		{"another ping interval", func(_ *testkit.Doorkeeper, h *message.Sync) { h.Ping = time.Second }},
		{"more received than was sent", func(_ *testkit.Doorkeeper, h *message.Sync) { h.Received = 1000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := testkit.NewDoorkeeper(t)
				p, first := k.Begins(t)
				h := testkit.Resuming(first, 1)
				c.spoil(k, &h)
				_, second := testkit.RawTo(t, k.Node, h)
				require.NotEqual(t, first.Session, second.Session)
				require.NotEqual(t, first.Secret, second.Secret)
				p.Echoes(2)
				synctest.Wait()
				require.Len(t, k.Node.Sessions(), 2)
			})
		})
	}
}

// The answer to a resume repeats the agreed parameters.
func TestResume_AnswerRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testkit.NewDoorkeeper(t)
		p, first := k.Begins(t)
		k.Grants(&asterisque.Grant{Inbound: limits.Limits{Soft: limits.Amount{Bytes: 64 << 20}}}, nil)
		p.W.Close()
		synctest.Wait()
		h := testkit.Resuming(first, 1)
		h.Codecs = []string{"json", "cbor"}
		q, second := testkit.RawTo(t, k.Node, h)
		require.Equal(t, []string{"cbor"}, second.Codecs)
		second.Secret, second.Received = first.Secret, first.Received
		require.Equal(t, first, second)
		q.Echoes(2)
	})
}

// A secret is valid for one resume.
func TestResume_SecretUsedOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		heard  bool // the peer has sent something over the second wire
		latest bool // it comes with the secret of the second wire
		fits   bool
	}{
		{"the former one, when the answer with the next was lost", false, false, true},
		{"the former one, when the peer has the next", true, false, false},
		{"the next one", true, true, true},
		{"the next one, without a word", false, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := testkit.NewDoorkeeper(t)
				p, first := k.Begins(t)
				p.W.Close()
				synctest.Wait()
				q, second := testkit.RawTo(t, k.Node, testkit.Resuming(first, 1))
				second.Session, second.Secret = bytes.Clone(second.Session), bytes.Clone(second.Secret)
				if c.heard {
					q.Send(message.Ping{})
				}
				synctest.Wait()
				h := testkit.Resuming(first, 1)
				if c.latest {
					h.Secret = second.Secret
				}
				r, third := testkit.RawTo(t, k.Node, h)
				require.Equal(t, c.fits, bytes.Equal(third.Session, first.Session))
				require.NotContains(t, [][]byte{first.Secret, second.Secret}, third.Secret)
				if c.fits {
					r.Echoes(2)
				}
			})
		})
	}
}

// exposedWire is a Wire that reports whether its frames are hidden from third parties.
type exposedWire struct {
	wire.Wire
	private bool
}

func (w exposedWire) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:5330"))
}

type sayingWire struct{ exposedWire }

func (w sayingWire) Private() bool { return w.private }

// Sessions are resumed over private wires only.
func TestResume_PrivateWiresOnly(t *testing.T) {
	plain := func(w wire.Wire) wire.Wire { return exposedWire{w, false} }
	for _, c := range []struct {
		name string
		wrap func(wire.Wire) wire.Wire
		opts []asterisque.Option
		may  bool
	}{
		{"in plain text", plain, nil, false},
		{"in plain text, which is allowed", plain, []asterisque.Option{asterisque.WithAccess(asterisque.Access{PlainCredentials: true})}, true},
		{"a Wire that says that it is private", func(w wire.Wire) wire.Wire { return sayingWire{exposedWire{w, true}} }, nil, true},
		{"a Wire that says that it is not", func(w wire.Wire) wire.Wire { return sayingWire{exposedWire{w, false}} }, nil, false},
		{"within the program", func(w wire.Wire) wire.Wire { return w }, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := append(c.opts, asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
				server := asterisque.NewNode(opts...)
				defer server.Close()
				a, b := wire.Pipe()
				defer a.Close()
				accepted := make(chan error, 1)
				go func() { _, err := server.Accept(testkit.Background, c.wrap(b)); accepted <- err }()
				p := &testkit.RawPeer{T: t, W: a}
				p.Send(testkit.Resumable())
				if c.may {
					require.NotZero(t, message.FeatureResume&p.Control().(message.Sync).Features)
					require.NoError(t, <-accepted)
				} else {
					p.WantSessionClose(codec.Unauthorized, "WithResume")
					require.ErrorIs(t, <-accepted, asterisque.ErrUnauthorized)
				}

				client := asterisque.NewNode(opts...)
				defer client.Close()
				there := asterisque.NewNode(opts...)
				defer there.Close()
				conn, err := client.Connect(testkit.Background, "", asterisque.ReconnectConfig{Dial: func(context.Context) (wire.Wire, error) {
					a, b := wire.Pipe()
					go there.Accept(testkit.Background, b) // ends with the handshake
					return c.wrap(a), nil
				}})
				if c.may {
					require.NoError(t, err)
					conn.Close()
					return
				}
				require.ErrorIs(t, err, asterisque.ErrUnauthorized)
				require.ErrorContains(t, err, "Access.PlainCredentials")
			})
		})
	}
}

// The error of resume at an exposed address names it.
func TestResume_OpenAddress(t *testing.T) {
	node := testkit.NewNode(t, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	err := node.ListenAndServe(testkit.Background, "tcp://:0")
	require.ErrorIs(t, err, asterisque.ErrUnauthorized)
	require.ErrorContains(t, err, "tcp://")
	require.ErrorContains(t, err, "WithResume")
	ctx, stop := context.WithCancel(testkit.Background)
	stop()
	for _, url := range []string{"tcp://127.0.0.1:0", "tcp://[::1]:0", "mem://private"} {
		if err := node.ListenAndServe(ctx, url); err != nil && !errors.Is(err, net.ErrClosed) {
			require.ErrorContains(t, err, "assign requested address", url) // there is no IPv6
		}
	}
	allowed := testkit.NewNode(t, asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithAccess(asterisque.Access{PlainCredentials: true}))
	require.NoError(t, allowed.ListenAndServe(ctx, "tcp://:0"))
}

// TestRelay_ExposedWire permits the peer to retry: a refusal would make it give up for good.
func TestRelay_ExposedWire(t *testing.T) {
	node := asterisque.NewNode(asterisque.WithID("a"), asterisque.WithResume(asterisque.Resume{For: time.Minute}))
	defer node.Close()
	a, b := wire.Pipe()
	p := &testkit.RawPeer{T: t, W: wiretest.Faulty(a, wiretest.Faults{})}
	defer p.W.Close()
	refused := make(chan error, 1)
	go func() { // ends with the handshake
		_, err := node.AcceptRelayed(testkit.Background, exposedWire{Wire: b})
		refused <- err
	}()
	p.Send(testkit.Resumable())
	c, ok := p.Control().(message.SessionClose)
	require.True(t, ok)
	require.Equal(t, asterisque.ErrUnavailable.Code, c.Code)
	require.ErrorIs(t, <-refused, asterisque.ErrUnavailable)
}
