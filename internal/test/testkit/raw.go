package testkit

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

// RawPeer is the other side of a session, controlled by the test, frame by frame.
type RawPeer struct {
	T *testing.T
	W wire.Wire
}

// Open returns the next Open.
func (p *RawPeer) Open() message.Open {
	p.T.Helper()
	for {
		if m, err := message.ParseOpen(p.Frame()); err == nil {
			return m
		}
	}
}

// Answer returns the next Close. Only Controls may come before it.
func (p *RawPeer) Answer() message.Close {
	p.T.Helper()
	for {
		f := p.Frame()
		if kind, _ := message.TypeOf(f); kind == message.ControlType {
			continue
		}
		c, err := message.ParseClose(f)
		require.NoError(p.T, err)
		return c
	}
}

// Send sends messages.
func (p *RawPeer) Send(messages ...interface{ AppendTo([]byte) []byte }) {
	p.T.Helper()
	for _, m := range messages {
		for _, frame := range Divided(m.AppendTo(nil)) {
			p.SendFrame(frame)
		}
	}
}

// Divided returns the frames of a message with the frame whole: whole itself, or its parts.
func Divided(whole []byte) (frames [][]byte) {
	if len(whole) <= message.MaxFrame {
		return [][]byte{whole}
	}
	part := message.Part{Pipe: PipeOf(whole), Whole: uint64(len(whole))}
	for ; len(whole) > 0; part.Whole = 0 {
		n := min(len(whole), message.MaxPart)
		part.Bytes, whole = whole[:n], whole[n:]
		frames = append(frames, part.AppendTo(nil))
	}
	return frames
}

// PipeOf returns the pipe of a message.
func PipeOf(frame []byte) uint64 {
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

// SendFrame sends a frame.
func (p *RawPeer) SendFrame(frame []byte) {
	p.T.Helper()
	require.NoError(p.T, p.W.WriteFrames([][]byte{frame}))
}

// Frame returns the next frame, or the whole message if the frame is its first part. It skips
// Controls between the parts.
func (p *RawPeer) Frame() []byte {
	p.T.Helper()
	f, err := p.W.ReadFrame(message.MaxFrame)
	require.NoError(p.T, err)
	var whole []byte
	for size := 1; len(whole) < size; {
		kind, err := message.TypeOf(f)
		require.NoError(p.T, err)
		if kind != message.PartType && size == 1 {
			return f
		}
		if part, err := message.ParsePart(f); err == nil {
			whole, size = append(whole, part.Bytes...), max(size, int(part.Whole))
		} else {
			require.Equal(p.T, message.ControlType, kind, "between parts")
		}
		if len(whole) < size {
			f, err = p.W.ReadFrame(message.MaxFrame)
			require.NoError(p.T, err)
		}
	}
	return whole
}

// Control returns the next frame, which must be a Control.
func (p *RawPeer) Control() message.Control {
	p.T.Helper()
	c, err := message.ParseControl(p.Frame())
	require.NoError(p.T, err)
	return c
}

// Close returns the next frame but Pings, which must be a Close.
func (p *RawPeer) Close() message.Close {
	p.T.Helper()
	frame := p.Frame()
	for IsPing(frame) {
		frame = p.Frame()
	}
	c, err := message.ParseClose(frame)
	require.NoError(p.T, err)
	return c
}

// WantSessionClose reads until the session is closed with code and a reason that contains text, and
// then closes the wire.
func (p *RawPeer) WantSessionClose(code codec.Code, text string) {
	p.T.Helper()
	for {
		frame := p.Frame()
		if c, err := message.ParseControl(frame); err == nil && !IsPing(frame) {
			bye, ok := c.(message.SessionClose)
			require.True(p.T, ok, "%T", c)
			require.Equal(p.T, code, bye.Code, bye.Message)
			require.Contains(p.T, bye.Message, text)
			break
		}
	}
	p.W.Close()
}

// Echoes makes a call on pipe id and requires its answer.
func (p *RawPeer) Echoes(id uint64) {
	p.T.Helper()
	p.Send(&message.Open{Pipe: id, Function: Echo.Number(), Params: []byte{0x61, 'x'}})
	require.Nil(p.T, p.Answer().Abort)
}

// Collect reads n countable frames, and returns the number of Acks between them and the count of
// the last one.
func (p *RawPeer) Collect(n int) (acks int, last uint64) {
	p.T.Helper()
	for n > 0 {
		f := p.Frame()
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

// Hello returns the first message of a RawPeer.
func Hello() message.Sync {
	return message.Sync{Version: message.Version, MaxMessage: 1 << 20, Codecs: []string{"cbor"}}
}

// HelloOf is Hello of a peer with a name.
func HelloOf(name string) message.Sync {
	h := Hello()
	h.Node = []byte(name)
	return h
}

// HelloWith is Hello with a ping interval and a timeout.
func HelloWith(ping, timeout time.Duration) message.Sync {
	h := Hello()
	h.Ping, h.Timeout = ping, timeout
	return h
}

// HelloIn is Hello of a peer with another codec.
func HelloIn(values codec.Values) message.Sync {
	h := Hello()
	h.Codecs = []string{values.Name()}
	return h
}

// DialRaw connects a RawPeer to a new node over TCP and completes the handshake.
func DialRaw(t *testing.T, opts ...asterisque.Option) (*RawPeer, *asterisque.Session) {
	t.Helper()
	node := asterisque.NewNode(opts...)
	t.Cleanup(func() { node.Close() })
	here, there := TCPPair(t)
	// a wait for a missing frame fails at its read
	require.NoError(t, here.SetReadDeadline(time.Now().Add(time.Duration(Long(120, 3600))*time.Second)))
	p := &RawPeer{t, wire.FromConn(here)}
	t.Cleanup(func() { p.W.Close() })
	sessions := make(chan *asterisque.Session, 1)
	go func() {
		s, err := node.Accept(Background, wire.FromConn(there))
		if err != nil {
			t.Error(err)
		}
		sessions <- s
	}()
	p.Send(Hello())
	require.IsType(t, message.Sync{}, p.Control())
	return p, <-sessions
}

// Frames returns messages in the form of a byte-stream wire.
func Frames(messages ...interface{ AppendTo([]byte) []byte }) []byte {
	var b []byte
	for _, m := range messages {
		for _, f := range Divided(m.AppendTo(nil)) {
			b = append(b, byte(len(f)>>24), byte(len(f)>>16), byte(len(f)>>8), byte(len(f)))
			b = append(b, f...)
		}
	}
	return b
}

// IsPing reports whether a frame is a Ping.
func IsPing(frame []byte) bool {
	c, err := message.ParseControl(frame)
	_, ping := c.(message.Ping)
	return err == nil && ping
}

// IsPong reports whether a frame is a Pong.
func IsPong(frame []byte) bool {
	c, err := message.ParseControl(frame)
	_, pong := c.(message.Pong)
	return err == nil && pong
}

// Unhex decodes hexadecimal digits.
func Unhex(t *testing.T, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	require.NoError(t, err)
	return b
}

// RawText returns a CBOR text of n bytes.
func RawText(n int) []byte {
	b, _ := codec.CBOR.Append(nil, strings.Repeat("x", max(0, n-3)))
	return b
}

// EchoOpen returns the Open for a call of Echo.
func EchoOpen(pipe uint64) *message.Open {
	return &message.Open{Pipe: pipe, Function: Echo.Number(), Params: []byte{0x61, 'x'}}
}

// Until reads Controls until want.
func (p *RawPeer) Until(want message.Control) {
	p.T.Helper()
	for p.Control() != want {
	}
}
