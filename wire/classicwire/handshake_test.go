package classicwire_test

import (
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

// A server grants the same as the original.
func TestHandshake_Grants(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for name, c := range map[string]struct {
			sync          string
			ping, timeout int32
		}{
			"sync":                {"0001 00000003 00000708", 3, 1800},
			"sync/ping0-timeout0": {"0001 00000000 00000000", 1, 60},
			"sync/ping61":         {"0001 0000003d 00000e11", 60, 3600},
			"sync/negative":       {"0001 ffffffff ffffffff", 1, 60},
			"sync/version-7fff":   {"7fff 00000003 00000708", 3, 1800},
			"sync/version-0":      {"0000 00000003 00000708", 3, 1800},
		} {
			t.Run(name, func(t *testing.T) {
				p, done := rawClient(t, form, newNode(t, form, originals(form)))
				p.send("2a510032", c.sync[:4], "0123456789abcdeffedcba9876543210 00000000000000000000000000000000 00000145f680b07b", c.sync[4:])
				s := p.wantSync()
				require.Equal(t, []int32{c.ping, c.timeout}, []int32{s.Ping, s.Timeout})
				require.EqualValues(t, 1, s.Version)
				require.NoError(t, (<-done).err)
			})
		}
		p, done := rawClient(t, form, newNode(t, form, originals(form)))
		p.send("2a51003c", compact(clientSync)[8:], "00112233445566778899")
		p.wantSync()
		require.NoError(t, (<-done).err, "more data than is known is fine")

		seen := map[classic.UUID]bool{}
		for range 3 {
			p, _ := rawClient(t, form, newNode(t, form, originals(form), asterisque.WithID("4d05c476-df6e-4ca7-8553-1faabb22b4cb")))
			p.send(clientSync)
			s := p.wantSync()
			require.Equal(t, "4d05c476-df6e-4ca7-8553-1faabb22b4cb", s.Node.String(), "its own")
			require.NotZero(t, s.Session)
			seen[s.Session] = true
		}
		require.Len(t, seen, 3, "each session has another id")
	})
}

// A peer that does not begin with a SyncConfig is refused.
func TestHandshake_NoSync(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for _, c := range []struct{ name, say, answer, want string }{
			{"sync/short-data", "2a510031" + compact(clientSync)[8:8+2*49], goodbye, "has 50 bytes, this one 49"},
			{"open-before-sync", msg(open(1, 10, "x")), goodbye, "first message is not a SyncConfig"},
			{"eof-before-sync", msg(eof(1)), goodbye, "first message is not a SyncConfig"},
			{"close-before-sync", goodbye, goodbye, "refuses the session"},
			// The original does not answer these three, so its client would reconnect forever.
			{"sync/session-nonzero", serverSync, goodbye, "wants to resume session 11111111-2222-3333-4444-555555555555"},
			{"endless", map[classic.Codec]string{classic.Simple: "2aff7fff", classic.MessagePack: "2affdaffff"}[form], goodbye, "bytes or more exceeds the limit of 8192"},
		} {
			t.Run(c.name, func(t *testing.T) {
				p, done := rawClient(t, form, newNode(t, form, originals(form)))
				p.send(c.say)
				o := <-done
				require.ErrorIs(t, o.err, asterisque.ErrHandshake)
				require.ErrorContains(t, o.err, c.want)
				if c.answer != "" {
					p.want(c.answer)
				}
				p.wantEnd()
			})
		}
	})
}

// A peer with an unknown codec is answered in the default one.
func TestHandshake_UnknownCodec(t *testing.T) {
	for name, say := range map[string]string{"garbage": "474554202f20485454502f312e31", "tls-hello": "1603010200010001fc0303"} {
		p, done := rawClient(t, classic.MessagePack, newNode(t, classic.Simple, originals(classic.Simple)))
		p.send(say)
		o := <-done
		require.ErrorIs(t, o.err, asterisque.ErrHandshake, name)
		require.ErrorContains(t, o.err, "unexpected message tag "+say[:2])
		p.wantEnd(goodbye)
	}
}

// A server that does not answer with a SyncConfig is refused.
func TestHandshake_ServerNoSync(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for _, c := range []struct{ name, say, answer, want string }{
			{"ack-zero-session", clientSync, goodbye, "gave the session no id, as a side does that dials: one of the two sides has to accept (Serve, Server)"},
			{"open-before-ack", msg(open(0x8000, 11, "x")), goodbye, "first message is not a SyncConfig"},
			{"closes", goodbye, goodbye, "refuses the session"},
			{"garbage", "ff", goodbye, "unexpected message tag ff"},
		} {
			t.Run(c.name, func(t *testing.T) {
				p, done := rawServer(t, form, newNode(t, form, originals(form)))
				p.wantSync()
				p.send(c.say)
				o := <-done
				require.ErrorIs(t, o.err, asterisque.ErrHandshake)
				require.ErrorContains(t, o.err, c.want)
				require.True(t, asterisque.Repeatable(o.err))
				if c.answer != "" {
					p.want(c.answer)
				}
				p.wantEnd()
			})
		}
	})
}

// A silent peer is disconnected.
func TestHandshake_SilentPeer(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, done := rawServer(t, form, newNode(t, form, originals(form), asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 500 * time.Millisecond})))
		p.wantSync()
		require.ErrorIs(t, (<-done).err, asterisque.ErrHandshake) // the original waits forever
		p.wantEnd(goodbye)
	})
}

// The error of a node that cannot be classic names the option to change.
func TestHandshake_NodeMisfits(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		here := asterisque.NewNode()
		t.Cleanup(func() { here.Close() })
		server, outcome := rawServer(t, form, here)
		o := <-outcome
		require.ErrorIs(t, o.err, asterisque.ErrHandshake)
		require.ErrorContains(t, o.err, "use WithCodecs(classic.MessagePack) or WithCodecs(classic.Simple)")
		server.wantEnd()

		n := asterisque.NewNode()
		t.Cleanup(func() { n.Close() })
		p, done := rawClient(t, form, n)
		p.send(clientSync)
		require.ErrorContains(t, (<-done).err, "the peer offers "+form.Name()+", this side cbor, json, raw")
		p.wantEnd(goodbye)
	})
}

func TestHandshake_NodeIDs(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		const uuid = "4d05c476-df6e-4ca7-8553-1faabb22b4cb"
		seen := map[string]bool{}
		for _, id := range []string{uuid, "", "", "star", "stars"} {
			p, _ := rawServer(t, form, newNode(t, form, originals(form), asterisque.WithID(id)))
			got := p.wantSync().Node.String()
			require.False(t, seen[got], "each is another")
			seen[got] = true
			p.conn.Close()
		}
		require.True(t, seen[uuid], "a uuid is sent as it is")
	})
}

// The next tests connect programs of one protocol to a port of the other.

// A classic client connects to a port of protocol 1.
func TestPort_ClassicOnProtocol1(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		there := asterisque.NewNode()
		t.Cleanup(func() { there.Close() })
		a, b := testkit.TCPPair(t)
		refused := make(chan error, 1)
		go func() {
			_, err := there.Accept(background, wire.FromConn(b))
			refused <- err
		}()
		_, err := newNode(t, form, originals(form)).Attach(background, classicwire.Client(a))
		require.ErrorIs(t, err, asterisque.ErrHandshake)
		require.ErrorContains(t, err, "it seems to speak protocol 1: use tcp://")
		require.ErrorIs(t, <-refused, asterisque.ErrHandshake)
	})
}

// A client of protocol 1 connects to a classic port.
func TestPort_Protocol1OnClassic(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		here := asterisque.NewNode()
		t.Cleanup(func() { here.Close() })
		a, b := testkit.TCPPair(t)
		refused := make(chan error, 1)
		go func() {
			_, err := newNode(t, form, originals(form)).Accept(background, classicwire.Server(b))
			refused <- err
		}()
		_, err := here.Attach(background, wire.FromConn(a))
		require.ErrorIs(t, err, asterisque.ErrHandshake)
		require.ErrorContains(t, err, "this side speaks the classic protocol 0.1 and not protocol 1: use classic://")
		err = <-refused
		require.ErrorIs(t, err, asterisque.ErrHandshake)
		require.ErrorContains(t, err, "it seems to speak protocol 1: use tcp://")
	})
}

// A classic port answers a peer of protocol 1 with a frame of that protocol.
func TestPort_AnswerIsProtocol1(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, _ := rawClient(t, form, newNode(t, form, originals(form)))
		p.send("000000ff")
		b, err := io.ReadAll(p.conn)
		require.NoError(t, err)
		require.EqualValues(t, len(b)-4, binary.BigEndian.Uint32(b))
		m, err := message.ParseControl(b[4:])
		require.NoError(t, err)
		require.Equal(t, codec.Handshake, m.(message.SessionClose).Code)
	})
}

func TestScheme(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		ln, err := wire.Listen(background, "classic://127.0.0.1:0", wire.Options{})
		require.NoError(t, err)
		n := newNode(t, form, offer())
		served := make(chan error, 1)
		go func() { served <- n.Serve(background, ln) }()
		s, err := newNode(t, form, asterisque.NewService()).Dial(background, ln.URL())
		require.NoError(t, err)
		got, err := echo.Call(background, s, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		require.NoError(t, ln.Close())
		require.NoError(t, ln.Close())
		require.NoError(t, <-served)
		_, err = ln.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		for url, want := range map[string]string{
			"classic://":                 "host is missing",
			"classic://127.0.0.1":        "port is missing",
			"classic://127.0.0.1:1/path": "has no meaning here",
			"classic://u@127.0.0.1:1":    "has no meaning here",
		} {
			_, err := wire.Dial(background, url, wire.Options{})
			require.ErrorContains(t, err, want)
		}
		_, err = wire.Listen(background, "classic://:x", wire.Options{})
		require.Error(t, err)
		_, err = wire.Listen(background, "classic://127.0.0.1", wire.Options{})
		require.ErrorContains(t, err, "port is missing")
	})
}
