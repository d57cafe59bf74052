package asterisque_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/stretchr/testify/require"
)

// rawPeer is the other side of a session, played by the test, frame by frame.
type rawPeer struct {
	t *testing.T
	w wire.Wire
}

// open returns the next Open.
func (p *rawPeer) open() message.Open {
	p.t.Helper()
	for {
		if m, err := message.ParseOpen(p.frame()); err == nil {
			return m
		}
	}
}

// answer returns the next Close. What comes before it, Controls say.
func (p *rawPeer) answer() message.Close {
	p.t.Helper()
	for {
		f := p.frame()
		if kind, _ := message.TypeOf(f); kind == message.ControlType {
			continue
		}
		c, err := message.ParseClose(f)
		require.NoError(p.t, err)
		return c
	}
}

// send sends messages.
func (p *rawPeer) send(messages ...interface{ AppendTo([]byte) []byte }) {
	p.t.Helper()
	for _, m := range messages {
		for _, frame := range divided(m.AppendTo(nil)) {
			p.sendFrame(frame)
		}
	}
}

// divided returns the frames in which a message crosses whose frame is whole: itself, or its parts.
func divided(whole []byte) (frames [][]byte) {
	if len(whole) <= message.MaxFrame {
		return [][]byte{whole}
	}
	part := message.Part{Pipe: pipeOf(whole), Whole: uint64(len(whole))}
	for ; len(whole) > 0; part.Whole = 0 {
		n := min(len(whole), message.MaxPart)
		part.Bytes, whole = whole[:n], whole[n:]
		frames = append(frames, part.AppendTo(nil))
	}
	return frames
}

// pipeOf returns the pipe of a message.
func pipeOf(frame []byte) uint64 {
	if m, err := message.ParseOpen(frame); err == nil {
		return m.Pipe
	}
	if m, err := message.ParseBlock(frame); err == nil {
		return m.Pipe
	}
	m, err := message.ParseClose(frame)
	if err != nil {
		panic(err)
	}
	return m.Pipe
}

func (p *rawPeer) sendFrame(frame []byte) {
	p.t.Helper()
	require.NoError(p.t, p.w.WriteFrames([][]byte{frame}))
}

// frame returns the next frame, or what a message is that comes in parts. Controls between the
// parts are left out.
func (p *rawPeer) frame() []byte {
	p.t.Helper()
	f, err := p.w.ReadFrame(message.MaxFrame)
	require.NoError(p.t, err)
	var whole []byte
	for size := 1; len(whole) < size; {
		kind, err := message.TypeOf(f)
		require.NoError(p.t, err)
		if kind != message.PartType && size == 1 {
			return f
		}
		if part, err := message.ParsePart(f); err == nil {
			whole, size = append(whole, part.Bytes...), max(size, int(part.Whole))
		} else {
			require.Equal(p.t, message.ControlType, kind, "between parts")
		}
		if len(whole) < size {
			f, err = p.w.ReadFrame(message.MaxFrame)
			require.NoError(p.t, err)
		}
	}
	return whole
}

// control returns the next frame, which must be a Control.
func (p *rawPeer) control() message.Control {
	p.t.Helper()
	c, err := message.ParseControl(p.frame())
	require.NoError(p.t, err)
	return c
}

// close returns the next frame, but for Pings, which must be a Close.
func (p *rawPeer) close() message.Close {
	p.t.Helper()
	frame := p.frame()
	for isPing(frame) {
		frame = p.frame()
	}
	c, err := message.ParseClose(frame)
	require.NoError(p.t, err)
	return c
}

// wantSessionClose reads until the session is closed with code for a reason that holds text, and
// the wire with it.
func (p *rawPeer) wantSessionClose(code codec.Code, text string) {
	p.t.Helper()
	for {
		frame := p.frame()
		if c, err := message.ParseControl(frame); err == nil && !isPing(frame) {
			bye, ok := c.(message.SessionClose)
			require.True(p.t, ok, "%T", c)
			require.Equal(p.t, code, bye.Code, bye.Message)
			require.Contains(p.t, bye.Message, text)
			break
		}
	}
	p.w.Close()
}

// echoes makes a call as pipe id, which is answered.
func (p *rawPeer) echoes(id uint64) {
	p.t.Helper()
	p.send(&message.Open{Pipe: id, Function: echo.Number(), Params: []byte{0x61, 'x'}})
	require.Nil(p.t, p.answer().Abort)
}

// collect reads frames until n countable ones have come, and returns how many Acks came with them,
// and what the last one said.
func (p *rawPeer) collect(n int) (acks int, last uint64) {
	p.t.Helper()
	for n > 0 {
		f := p.frame()
		if message.Countable(f) {
			n--
		} else if c, err := message.ParseControl(f); err == nil {
			if a, ok := c.(message.Ack); ok {
				acks, last = acks+1, a.Count
			}
		}
	}
	return acks, last
}

// hello is what a rawPeer says first.
func hello() message.Sync {
	return message.Sync{Version: message.Version, MaxMessage: 1 << 20, Codecs: []string{"cbor"}}
}

// helloOf is hello of a peer with a name.
func helloOf(name string) message.Sync {
	h := hello()
	h.Node = []byte(name)
	return h
}

// helloWith is hello with a ping interval and a timeout.
func helloWith(ping, timeout time.Duration) message.Sync {
	h := hello()
	h.Ping, h.Timeout = ping, timeout
	return h
}

// helloIn is hello of a peer with another codec.
func helloIn(values codec.Values) message.Sync {
	h := hello()
	h.Codecs = []string{values.Name()}
	return h
}

// dialRaw connects a rawPeer to a new node over TCP and completes the handshake.
func dialRaw(t *testing.T, opts ...asterisque.Option) (*rawPeer, *asterisque.Session) {
	t.Helper()
	node := asterisque.NewNode(opts...)
	t.Cleanup(func() { node.Close() })
	here, there := tcpPair(t)
	// whoever waits for what does not come fails where it reads
	require.NoError(t, here.SetReadDeadline(time.Now().Add(time.Duration(long(120, 3600))*time.Second)))
	p := &rawPeer{t, wire.FromConn(here)}
	t.Cleanup(func() { p.w.Close() })
	sessions := make(chan *asterisque.Session, 1)
	go func() {
		s, err := node.Accept(background, wire.FromConn(there))
		if err != nil {
			t.Error(err)
		}
		sessions <- s
	}()
	p.send(hello())
	require.IsType(t, message.Sync{}, p.control())
	return p, <-sessions
}

// frames returns messages as they stand on a byte-stream wire.
func frames(messages ...interface{ AppendTo([]byte) []byte }) []byte {
	var b []byte
	for _, m := range messages {
		for _, f := range divided(m.AppendTo(nil)) {
			b = append(b, byte(len(f)>>24), byte(len(f)>>16), byte(len(f)>>8), byte(len(f)))
			b = append(b, f...)
		}
	}
	return b
}

func isPing(frame []byte) bool {
	c, err := message.ParseControl(frame)
	_, ping := c.(message.Ping)
	return err == nil && ping
}

func isPong(frame []byte) bool {
	c, err := message.ParseControl(frame)
	_, pong := c.(message.Pong)
	return err == nil && pong
}

func unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// rawText returns n bytes that are a CBOR text.
func rawText(n int) []byte {
	b, _ := codec.CBOR.Append(nil, strings.Repeat("x", max(0, n-3)))
	return b
}

func echoOpen(pipe uint64) *message.Open {
	return &message.Open{Pipe: pipe, Function: echo.Number(), Params: []byte{0x61, 'x'}}
}
