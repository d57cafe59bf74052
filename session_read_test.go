package asterisque_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
)

func TestAPeerThatBreaksTheProtocolIsToldAndCutOff(t *testing.T) {
	open := func(id uint64) *message.Open {
		return &message.Open{Pipe: id, Function: block.Number(), Params: []byte{0x60}}
	}
	for _, c := range []struct {
		name string
		say  func(*rawPeer)
		want string
	}{
		{"an empty frame", func(p *rawPeer) { p.sendFrame(nil) }, ""},
		{"not CBOR", func(p *rawPeer) { p.sendFrame([]byte{0xff, 1, 2}) }, ""},
		{"a frame cut short", func(p *rawPeer) { p.sendFrame(unhex(p.t, "85 01 00")) }, ""},
		{"an unknown message type", func(p *rawPeer) { p.sendFrame(unhex(p.t, "82 05 00")) }, "message type"},
		{"bytes after the frame", func(p *rawPeer) { p.sendFrame(append(message.Ping{}.AppendTo(nil), 0)) }, "after the frame"},
		{"a pipe id of the other side", func(p *rawPeer) { p.send(open(1)) }, "one of the other side's"},
		{"a pipe id used before", func(p *rawPeer) { p.send(open(4), open(4)) }, "not above the last, 4"},
		{"a pipe id below the last, of a call that would be refused", func(p *rawPeer) { p.send(open(4), &message.Open{Pipe: 2, Function: 9999}) }, "not above the last, 4"},
		{"a pipe id below the last", func(p *rawPeer) { p.send(open(4), open(2)) }, "not above the last, 4"},
		{"a Block for a pipe never opened", func(p *rawPeer) { p.send(&message.Block{Pipe: 6}) }, "pipe 6, which was never opened"},
		{"a Close for a pipe never opened", func(p *rawPeer) { p.send(&message.Close{Pipe: 6}) }, "pipe 6, which was never opened"},
		{"a Close for a pipe the other side never opened", func(p *rawPeer) { p.send(&message.Close{Pipe: 1}) }, "pipe 1, which was never opened"},
		{"a Credit for a pipe never opened", func(p *rawPeer) { p.send(message.Credit{Pipe: 8}) }, "pipe 8, which was never opened"},
		{"a second Sync", func(p *rawPeer) { p.send(hello()) }, "second Sync"},
		{"a Block after the end of its direction", func(p *rawPeer) {
			p.send(&message.Open{Pipe: 0, Function: 50}, &message.Block{Pipe: 0, End: true}, &message.Block{Pipe: 0})
		}, "after the end"},
		{"an oversized frame", func(p *rawPeer) { p.w.(wire.BatchWriter).WriteBatch(unhex(p.t, "7fffffff")) }, "2147483647"},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc, _, _ := blockService()
			svc.Handle(50, "stream", waitForContext)
			p, s := dialRaw(t, asterisque.WithService(svc))
			c.say(p)
			p.wantSessionClose(codec.Protocol, c.want)
			<-s.Done()
			require.ErrorIs(t, s.Err(), asterisque.ErrProtocol)
			require.NoError(t, s.Close(), "everything is cleaned up")
		})
	}
}

func TestLateMessagesForAPipeThatIsOverAreIgnored(t *testing.T) {
	p, s := dialRaw(t, asterisque.WithService(echoService()))
	p.send(&message.Open{Pipe: 0, Function: 10, Params: []byte{0x61, 'x'}})
	require.Equal(t, []byte{0x61, 'x'}, p.close().Result)
	p.send(&message.Block{Pipe: 0, Payload: []byte("late")}, &message.Block{Pipe: 0, End: true}, message.Credit{Pipe: 0, Limit: 5},
		&message.Close{Pipe: 0, Abort: codec.ErrCanceled}, message.Pong{}, message.Ack{Count: 1}, message.UnknownControl{Code: 99}, message.Ping{N: 7})
	require.Equal(t, message.Pong{N: 7}, p.control(), "the session goes on")
	require.NoError(t, s.Err())
}

func TestAPeersMistakeInACallFailsThatCallOnly(t *testing.T) {
	svc := echoService()
	svc.Handle(50, "stream", waitForContext)
	p, s := dialRaw(t, asterisque.WithService(svc))
	p.send(&message.Open{Pipe: 0, Function: 10, Params: []byte{0xff}})
	require.Equal(t, codec.BadParams, p.close().Abort.Code, "parameters that are not CBOR")
	p.send(&message.Open{Pipe: 2, Function: 99})
	c := p.close()
	require.Equal(t, codec.NoFunction, c.Abort.Code)
	require.Equal(t, codec.Refused, c.Abort.Ran)
	p.send(&message.Open{Pipe: 4, Function: 50, Meta: message.Meta{Stream: true}})
	require.Equal(t, message.Credit{Pipe: 4, Limit: 4096 + 64<<10}, p.control(), "what a handler that runs has room for")
	for range 45 { // which cost 1,536 each
		p.send(&message.Block{Pipe: 4, Payload: make([]byte, 1024)})
	}
	p.send(message.Ping{N: 1})
	require.Equal(t, message.Pong{N: 1}, p.control())
	p.send(&message.Block{Pipe: 4, Payload: make([]byte, 1024)})
	c = p.close()
	require.Equal(t, codec.WindowViolation, c.Abort.Code)
	require.NoError(t, s.Err())
}

func TestTheOtherSidesSessionsAreUnharmedByABadPeer(t *testing.T) {
	svc := echoService()
	node := asterisque.NewNode(asterisque.WithService(svc))
	t.Cleanup(func() { node.Close() })
	client := asterisque.NewNode()
	t.Cleanup(func() { client.Close() })
	good, _ := connectNodes(t, client, node)

	here, there := tcpPair(t)
	bad := &rawPeer{t, wire.FromConn(here)}
	go node.Accept(background, wire.FromConn(there))
	bad.send(hello())
	bad.control()
	bad.sendFrame([]byte{0xff})
	bad.wantSessionClose(codec.Protocol, "")

	_, err := echo.Call(background, good, "still here")
	require.NoError(t, err)
}
