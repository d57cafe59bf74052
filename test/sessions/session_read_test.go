package sessions

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
)

// A peer that breaks the protocol gets the reason, and is disconnected.
func TestProtocol_ViolationCutOff(t *testing.T) {
	open := func(id uint64) *message.Open {
		return &message.Open{Pipe: id, Function: testkit.Block.Number(), Params: []byte{0x60}}
	}
	for _, c := range []struct {
		name string
		say  func(*testkit.RawPeer)
		want string
	}{
		{"an empty frame", func(p *testkit.RawPeer) { p.SendFrame(nil) }, ""},
		{"not CBOR", func(p *testkit.RawPeer) { p.SendFrame([]byte{0xff, 1, 2}) }, ""},
		{"a frame cut short", func(p *testkit.RawPeer) { p.SendFrame(testkit.Unhex(p.T, "85 01 00")) }, ""},
		{"an unknown message type", func(p *testkit.RawPeer) { p.SendFrame(testkit.Unhex(p.T, "82 05 00")) }, "message type"},
		{"bytes after the frame", func(p *testkit.RawPeer) { p.SendFrame(append(message.Ping{}.AppendTo(nil), 0)) }, "after the frame"},
		{"a pipe id of the other side", func(p *testkit.RawPeer) { p.Send(open(1)) }, "one of the other side's"},
		{"a pipe id used before", func(p *testkit.RawPeer) { p.Send(open(4), open(4)) }, "not above the last, 4"},
		{"a pipe id below the last, of a call that would be refused", func(p *testkit.RawPeer) { p.Send(open(4), &message.Open{Pipe: 2, Function: 9999}) }, "not above the last, 4"},
		{"a pipe id below the last", func(p *testkit.RawPeer) { p.Send(open(4), open(2)) }, "not above the last, 4"},
		{"a Block for a pipe never opened", func(p *testkit.RawPeer) { p.Send(&message.Block{Pipe: 6}) }, "pipe 6, which was never opened"},
		{"a Close for a pipe never opened", func(p *testkit.RawPeer) { p.Send(&message.Close{Pipe: 6}) }, "pipe 6, which was never opened"},
		{"a Close for a pipe the other side never opened", func(p *testkit.RawPeer) { p.Send(&message.Close{Pipe: 1}) }, "pipe 1, which was never opened"},
		{"a Credit for a pipe never opened", func(p *testkit.RawPeer) { p.Send(message.Credit{Pipe: 8}) }, "pipe 8, which was never opened"},
		{"a second Sync", func(p *testkit.RawPeer) { p.Send(testkit.Hello()) }, "second Sync"},
		{"a Block after the end of its direction", func(p *testkit.RawPeer) {
			p.Send(&message.Open{Pipe: 0, Function: 50}, &message.Block{Pipe: 0, End: true}, &message.Block{Pipe: 0})
		}, "after the end"},
		{"an oversized frame", func(p *testkit.RawPeer) { p.W.(wire.BatchWriter).WriteBatch(testkit.Unhex(p.T, "7fffffff")) }, "2147483647"},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc, _, _ := testkit.BlockService()
			svc.Handle(50, "stream", testkit.WaitForContext)
			p, s := testkit.DialRaw(t, asterisque.WithService(svc))
			c.say(p)
			p.WantSessionClose(codec.Protocol, c.want)
			<-s.Done()
			require.ErrorIs(t, s.Err(), asterisque.ErrProtocol)
			require.NoError(t, s.Close(), "everything is cleaned up")
		})
	}
}

// Late messages for a closed pipe are ignored.
func TestProtocol_LateMessages(t *testing.T) {
	p, s := testkit.DialRaw(t, asterisque.WithService(testkit.EchoService()))
	p.Send(&message.Open{Pipe: 0, Function: 10, Params: []byte{0x61, 'x'}})
	require.Equal(t, []byte{0x61, 'x'}, p.Close().Result)
	p.Send(&message.Block{Pipe: 0, Payload: []byte("late")}, &message.Block{Pipe: 0, End: true}, message.Credit{Pipe: 0, Limit: 5},
		&message.Close{Pipe: 0, Abort: codec.ErrCanceled}, message.Pong{}, message.Ack{Count: 1}, message.UnknownControl{Code: 99}, message.Ping{N: 7})
	require.Equal(t, message.Pong{N: 7}, p.Control(), "the session continues")
	require.NoError(t, s.Err())
}

// A mistake of the peer within a call fails only that call.
func TestProtocol_MistakeInCall(t *testing.T) {
	svc := testkit.EchoService()
	svc.Handle(50, "stream", testkit.WaitForContext)
	p, s := testkit.DialRaw(t, asterisque.WithService(svc))
	p.Send(&message.Open{Pipe: 0, Function: 10, Params: []byte{0xff}})
	require.Equal(t, codec.BadParams, p.Close().Abort.Code, "parameters that are not CBOR")
	p.Send(&message.Open{Pipe: 2, Function: 99})
	c := p.Close()
	require.Equal(t, codec.NoFunction, c.Abort.Code)
	require.Equal(t, codec.Refused, c.Abort.Ran)
	p.Send(&message.Open{Pipe: 4, Function: 50, Meta: message.Meta{Stream: true}})
	require.Equal(t, message.Credit{Pipe: 4, Limit: 64 << 10}, p.Control(), "what a handler that runs has room for")
	for range 42 { // which cost 1,536 each
		p.Send(&message.Block{Pipe: 4, Payload: make([]byte, 1024)})
	}
	p.Send(message.Ping{N: 1})
	require.Equal(t, message.Pong{N: 1}, p.Control())
	p.Send(&message.Block{Pipe: 4, Payload: make([]byte, 1024)})
	c = p.Close()
	require.Equal(t, codec.WindowViolation, c.Abort.Code)
	require.NoError(t, s.Err())
}

// Other sessions are unharmed by a bad peer.
func TestProtocol_OtherSessions(t *testing.T) {
	svc := testkit.EchoService()
	node := asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { node.Close() })
	client := asterisque.NewNode()
	t.Cleanup(func() { client.Close() })
	good, _ := testkit.ConnectNodes(t, client, node)

	here, there := testkit.TCPPair(t)
	bad := &testkit.RawPeer{T: t, W: wire.FromConn(here)}
	go node.Accept(testkit.Background, wire.FromConn(there))
	bad.Send(testkit.Hello())
	bad.Control()
	bad.SendFrame([]byte{0xff})
	bad.WantSessionClose(codec.Protocol, "")

	_, err := testkit.Echo.Call(testkit.Background, good, "still here")
	require.NoError(t, err)
}
