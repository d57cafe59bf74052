package nodes

import (
	"context"
	"crypto/rand"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
)

// First bytes of another protocol are refused at once.
func TestHandshake_OtherProtocol(t *testing.T) {
	noise := make([]byte, 64)
	rand.Read(noise)
	noise[0] |= 0x80 // otherwise it may announce a frame of a size that is plausible
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"an HTTP request":         {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "does not speak asterisque"},
		"a TLS hello":             {testkit.Unhex(t, "16 03 01 00 f4 01 00 00 f0 03 03"), "does not speak asterisque"},
		"random bytes":            {noise, "does not speak asterisque"},
		"a frame that is no CBOR": {testkit.Unhex(t, "00000003 ff ff ff"), "does not speak asterisque"},
		"an Open before the Sync": {testkit.Frames(&message.Open{}), "does not speak asterisque"},
		"a Ping before the Sync":  {testkit.Frames(message.Ping{}), "is not a Sync"},
		"half a Sync and the end": {testkit.Frames(testkit.Hello())[:10], "closed the wire"},
		"nothing, and the end":    {nil, "closed the wire"},
		"a refusal":               {testkit.Frames(message.SessionClose{Code: codec.Unauthorized, Message: "not you"}), "not you"},
	} {
		t.Run(name, func(t *testing.T) {
			for side, join := range map[string]func(*asterisque.Node, context.Context, wire.Wire) (*asterisque.Session, error){
				"accepting": (*asterisque.Node).Accept, "dialling": (*asterisque.Node).Attach,
			} {
				node := asterisque.NewNode()
				defer node.Close()
				here, there := testkit.TCPPair(t)
				result := make(chan error, 1)
				go func() { _, err := join(node, testkit.Background, wire.FromConn(there)); result <- err }()
				if side == "dialling" {
					_, err := wire.FromConn(here).ReadFrame(1 << 20)
					require.NoError(t, err)
				}
				here.Write(c.bytes)
				if c.want == "closed the wire" {
					here.Close()
				}
				err := <-result
				require.ErrorContains(t, err, c.want, side)
				require.NotContains(t, err.Error(), ": EOF", "which says no more than that it is closed")
				require.True(t, asterisque.Repeatable(err))
				if c.want != "closed the wire" && c.want != "not you" {
					require.ErrorIs(t, err, asterisque.ErrHandshake)
					p := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
					p.WantSessionClose(codec.Handshake, c.want)
				}
				rest, err := io.ReadAll(here)
				if err == nil {
					require.Empty(t, rest, "the connection is closed")
				}
			}
		})
	}
}

// Both sides dial.
func TestHandshake_BothSidesDial(t *testing.T) {
	a, b := wire.Pipe()
	failed := make(chan error)
	go func() { _, err := testkit.NewNode(t).Attach(testkit.Background, a); failed <- err }()
	_, err := testkit.NewNode(t).Attach(testkit.Background, b)
	require.ErrorIs(t, <-failed, asterisque.ErrHandshake)
	require.ErrorIs(t, err, asterisque.ErrHandshake)
	require.ErrorContains(t, err, "one of the two sides has to accept (Serve, Accept), and both have dialled (Dial, Attach)")
}

// Both sides accept.
func TestHandshake_BothSidesAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := wire.Pipe()
		failed := make(chan error)
		go func() { _, err := testkit.NewNode(t).Accept(testkit.Background, a); failed <- err }()
		first := testkit.NewNode(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Second}))
		_, err := first.Accept(testkit.Background, b)
		require.Error(t, <-failed)
		require.ErrorIs(t, err, asterisque.ErrHandshake)
		require.ErrorContains(t, err, "it sent nothing, as a side does that accepts, and one of the two has to dial (Dial, Attach)")
	})
}

// A Sync with a mismatch is refused.
func TestHandshake_SyncMismatch(t *testing.T) {
	session := make([]byte, message.SessionSize)
	change := func(f func(*message.Sync)) message.Sync { h := testkit.Hello(); f(&h); return h }
	for _, c := range []struct {
		name      string
		sync      message.Sync
		accepting string // what the accepting side says to it; "": accepted
		dialling  string
	}{
		{"as it should be", change(func(s *message.Sync) { s.Session = session }), "", ""},
		{"without a session id", testkit.Hello(), "", "gave the session no id, as a side does that dials"},
		{"an old version", change(func(s *message.Sync) { s.Version, s.Session = 0, session }), "version 0", "version 0"},
		{"a newer version", change(func(s *message.Sync) { s.Version, s.Session = 7, session }), "", "version 7"},
		{"unknown codecs", change(func(s *message.Sync) { s.Codecs, s.Session = []string{"pigeon"}, session }), "no common value codec: the peer offers pigeon, this side cbor, json, raw", "pigeon"},
		{"a choice of two", change(func(s *message.Sync) { s.Codecs, s.Session = []string{"raw", "json"}, session }), "", "raw"},
		{"frames too small for anything", change(func(s *message.Sync) { s.MaxMessage, s.Session = 1023, session }), "1023 bytes only", "1023 bytes only"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for side, join := range map[string]func(*asterisque.Node, context.Context, wire.Wire) (*asterisque.Session, error){
				"accepting": (*asterisque.Node).Accept, "dialling": (*asterisque.Node).Attach,
			} {
				node := asterisque.NewNode()
				defer node.Close()
				a, b := wire.Pipe()
				defer a.Close()
				result := make(chan error, 1)
				go func() { _, err := join(node, testkit.Background, b); result <- err }()
				p, want := &testkit.RawPeer{T: t, W: a}, c.accepting
				if side == "dialling" {
					want = c.dialling
					require.IsType(t, message.Sync{}, p.Control())
				}
				p.Send(c.sync)
				err := <-result
				if want == "" {
					require.NoError(t, err, side)
					continue
				}
				require.ErrorIs(t, err, asterisque.ErrHandshake, side)
				require.ErrorContains(t, err, want, side)
				p.WantSessionClose(codec.Handshake, want)
			}
		})
	}
}

// A silent peer is disconnected within the handshake timeout.
func TestHandshake_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		a, b := wire.Pipe()
		begin := time.Now()
		result := make(chan error, 1)
		go func() { _, err := node.Accept(testkit.Background, b); result <- err }()
		p := &testkit.RawPeer{T: t, W: a}
		p.WantSessionClose(codec.Expired, "not completed in time")
		err := <-result
		require.ErrorIs(t, err, asterisque.ErrHandshake)
		require.ErrorContains(t, err, "did not complete the handshake within 5s")
		require.Equal(t, 5*time.Second, time.Since(begin))
	})
}

// The context ends a handshake.
func TestHandshake_Context(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := asterisque.NewNode()
		defer node.Close()
		_, b := wire.Pipe()
		ctx, cancel := context.WithTimeout(testkit.Background, time.Second)
		defer cancel()
		_, err := node.Attach(ctx, b)
		require.ErrorIs(t, err, asterisque.ErrExpired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// TestHandshake_SilentPeersCost measures the heap of connections that never send their handshake.
func TestHandshake_SilentPeersCost(t *testing.T) {
	const peers, most = 200, 16 << 10
	node := asterisque.NewNode()
	var wires []wire.Wire
	before := weightest.Heap()
	started, done := make(chan struct{}), make(chan struct{})
	for range peers {
		here, there := testkit.TCPPair(t)
		wires = append(wires, wire.FromConn(here))
		here.Write([]byte{0, 0, 16}) // a length that never becomes whole
		go func() {
			started <- struct{}{}
			node.Accept(testkit.Background, wire.FromConn(there))
			done <- struct{}{}
		}()
		<-started
	}
	each := weightest.HeldSince(before, peers*most) / peers
	t.Logf("%d bytes for each, both ends of its connection included", each)
	require.Less(t, each, most)
	for _, w := range wires {
		w.Close()
	}
	for range peers {
		<-done
	}
	node.Close()
}
