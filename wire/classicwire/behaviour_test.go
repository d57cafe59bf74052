package classicwire_test

import (
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
)

// msg returns the bytes of messages in hexadecimal digits. Tests write all messages in the encoding
// of Simple; a rawPeer of the other codec translates them.
func msg(list ...classic.Message) string {
	var b []byte
	var err error
	for _, m := range list {
		if b, err = m.AppendTo(b, classic.Simple); err != nil {
			panic(err)
		}
	}
	return hex.EncodeToString(b)
}

// open returns an Open with parameters.
func open(id, function uint16, params ...any) *classic.Open {
	o := &classic.Open{Pipe: id, Function: function, Count: uint16(len(params))}
	for _, p := range params {
		o.Params, _ = classic.Simple.Append(o.Params, p)
	}
	return o
}

func block(id uint16, payload string) *classic.Block {
	return &classic.Block{Pipe: id, Payload: []byte(payload)}
}
func eof(id uint16) *classic.Block { return &classic.Block{Pipe: id, EOF: true} }

// result returns a Close with a value.
func result(id uint16, v any) *classic.Close {
	b, _ := classic.Simple.Append(nil, v)
	return &classic.Close{Pipe: id, Result: b}
}

// abort returns a Close with Unexpected.
func abort(id uint16, format string, args ...any) *classic.Close {
	return &classic.Close{Pipe: id, Abort: &classic.Abort{Code: classic.Unexpected, Message: fmt.Sprintf(format, args...)}}
}

func control(code byte, data ...byte) *classic.Control {
	return &classic.Control{Code: code, Data: data}
}

// TestServer_AsOriginal replays what raw clients sent to the original. The names are those of its
// records. A comment gives the reason for each answer that differs here; the texts of errors are
// this library's own.
func TestServer_AsOriginal(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for _, c := range []struct {
			name    string
			say     []classic.Message
			answers []classic.Message
			ends    bool // the connection
		}{
			{"control/P", []classic.Message{control('P')}, []classic.Message{control('C')}, true},
			{"control/close", []classic.Message{control('C')}, nil, true},
			{"control/close+data", []classic.Message{control('C', 1, 2)}, nil, true},
			{"sync/twice", []classic.Message{control('Q', make([]byte, 50)...)}, []classic.Message{control('C')}, true},
			{"unknown-function", []classic.Message{open(1, 999)}, []classic.Message{abort(1, "no such function: function 999")}, false},
			{
				"wrong-arity", []classic.Message{open(1, 10)},
				[]classic.Message{abort(1, `bad parameters: function 10 "greet": a call with 1 parameter was expected, and one with 0 came`)}, false,
			},
			{
				"wrong-arity-2", []classic.Message{open(1, 10, "a", "b")},
				[]classic.Message{abort(1, `bad parameters: function 10 "greet": a call with 1 parameter was expected, and one with 2 came`)}, false,
			},
			// The original converts 5 to "5".
			{
				"converted-parameter", []classic.Message{open(1, 10, int32(5))},
				[]classic.Message{abort(1, `bad parameters: function 10 "greet": a string was expected, and the integer 5 came`)}, false,
			},
			// The original returns "null".
			{"null-parameter", []classic.Message{open(1, 10, nil)}, []classic.Message{result(1, "hello, ")}, false},
			{
				"unconvertible-parameter", []classic.Message{open(1, 10, []any{})},
				[]classic.Message{abort(1, `bad parameters: function 10 "greet": a string was expected, and a list came`)}, false,
			},
			{"failing-function", []classic.Message{open(1, 50)}, []classic.Message{abort(1, "unexpected error")}, false},
			{"server-side-id", []classic.Message{open(0x8001, 10, "x")}, []classic.Message{result(0x8001, "hello, x")}, false},
			{"close-unknown-pipe", []classic.Message{result(99, nil)}, nil, false},
			{"block-unknown-pipe", []classic.Message{block(99, "x")}, []classic.Message{abort(99, "unknown pipe-id specified: 99")}, false},
			{"eof-unknown-pipe", []classic.Message{eof(0x9000)}, []classic.Message{abort(0x9000, "unknown pipe-id specified: -28672")}, false},
			{"duplicate-pipe", []classic.Message{open(1, 20), open(1, 20)}, []classic.Message{abort(1, "duplicate pipe-id specified: 1")}, false},
			{
				"sum", []classic.Message{open(1, 20), block(1, "1"), block(1, "2"), eof(1)},
				[]classic.Message{block(1, "1"), block(1, "2"), result(1, int32(3))}, false,
			},
			// The original answers each Block of an ended pipe. This package ignores these Blocks,
			// because an answer could reach the next call with the same id.
			{
				"sum/block-after-eof", []classic.Message{open(1, 20), block(1, "1"), eof(1), block(1, "2"), eof(1)},
				[]classic.Message{block(1, "1"), result(1, int32(1))}, false,
			},
			{"sum/caller-closes-ok", []classic.Message{open(1, 20), result(1, nil)}, nil, false},
			{"empty-block", []classic.Message{open(1, 20), block(1, "")}, []classic.Message{abort(1, "unexpected error")}, false},
			{"callback/1", []classic.Message{open(1, 30, "hi")}, []classic.Message{open(0x8000, 11, "hi")}, false},
		} {
			t.Run(c.name, func(t *testing.T) {
				p, s := serve(t, form, newNode(t, form, originals(form)))
				p.send(msg(c.say...))
				for _, m := range c.answers {
					p.want(msg(m))
				}
				if c.ends {
					p.wantEnd()
					return
				}
				p.send(msg(open(2, 10, "on")))
				p.want(msg(result(2, "hello, on")))
				require.NoError(t, s.Err(), "the session continues")
			})
		}
	})
}

// A server ends the session of a peer with invalid messages.
func TestServer_InvalidPeer(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for name, bytes := range map[string]string{
			"bad-tag":       "00",
			"bad-value-tag": "28000100000a000109",
			"pipe-0":        "28000000000a0000",
			"flag":          "29000100",
			"block-61440":   msg(block(1, ""))[:8] + "f000" + hex.EncodeToString(make([]byte, 61440)),
			// an Open with a larger count of values than its maximum number of bytes
			"large": "28000100000a ffff" + "20ffff",
		} {
			t.Run(name, func(t *testing.T) {
				p, s := serve(t, form, newNode(t, form, originals(form)))
				p.send(bytes)
				// The original does not answer, so its client reconnects forever.
				p.wantEnd(goodbye)
				<-s.Done()
				require.ErrorIs(t, s.Err(), asterisque.ErrProtocol)
			})
		}
	})
}

// A client treats a peer as the original did.
func TestClient_AsOriginal(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		greet := asterisque.Func[string, string](10, "greet")
		type answer struct {
			result string
			err    error
		}
		for _, c := range []struct {
			name    string
			say     []classic.Message
			answers []classic.Message
			want    func(t *testing.T, a answer)
			ends    bool
		}{
			{"normal", []classic.Message{result(1, "ok")}, nil, func(t *testing.T, a answer) { require.Equal(t, answer{"ok", nil}, a) }, false},
			{
				"abort", []classic.Message{&classic.Close{Pipe: 1, Abort: &classic.Abort{Code: 404, Message: "nope"}}}, nil, func(t *testing.T, a answer) {
					require.ErrorIs(t, a.err, &asterisque.Abort{Code: classic.Code(404)})
					require.ErrorContains(t, a.err, "nope")
				}, false,
			},
			{
				"unknown-pipes", []classic.Message{result(77, nil), block(78, ""), result(1, "ok")}, []classic.Message{abort(78, "unknown pipe-id specified: 78")},
				func(t *testing.T, a answer) { require.Equal(t, answer{"ok", nil}, a) }, false,
			},
			{
				"id-clash", []classic.Message{open(1, 11, "x"), result(1, "ok")}, []classic.Message{abort(1, "duplicate pipe-id specified: 1")},
				func(t *testing.T, a answer) { require.Equal(t, answer{"ok", nil}, a) }, false,
			},
			{
				"control-close", []classic.Message{control('C')}, nil, func(t *testing.T, a answer) {
					// In the original, the call never ends.
					require.ErrorIs(t, a.err, asterisque.ErrSessionClosed)
					require.ErrorContains(t, a.err, "the peer closed the session")
				}, true,
			},
			{
				"control-P", []classic.Message{control('P')},
				[]classic.Message{control('C')}, func(t *testing.T, a answer) { require.ErrorIs(t, a.err, asterisque.ErrProtocol) }, true,
			},
			{
				"ack-twice", []classic.Message{control('Q', make([]byte, 50)...)},
				[]classic.Message{control('C')}, func(t *testing.T, a answer) { require.ErrorIs(t, a.err, asterisque.ErrProtocol) }, true,
			},
		} {
			t.Run(c.name, func(t *testing.T) {
				p, s := dial(t, form, newNode(t, form, originals(form)))
				called := make(chan answer, 1)
				go func() {
					r, err := greet.Call(background, s, "probe")
					called <- answer{r, err}
				}()
				p.want("28000100000a00010b000570726f6265")
				p.send(msg(c.say...))
				p.want(messages(c.answers)...)
				c.want(t, <-called)
				if c.ends {
					p.wantEnd()
				} else {
					require.NoError(t, s.Err())
				}
			})
		}
	})
}

func messages(list []classic.Message) (hex []string) {
	for _, m := range list {
		hex = append(hex, msg(m))
	}
	return hex
}

// A client ends the call when the connection is lost.
func TestClient_LostConnection(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, s := dial(t, form, newNode(t, form, originals(form)))
		called := make(chan error, 1)
		go func() {
			_, err := s.Call(background, 10, nil)
			called <- err
		}()
		p.want("28000100000a0000")
		p.conn.Close()
		require.ErrorIs(t, <-called, asterisque.ErrSessionClosed)
	})
}

// A peer gets an end for its calls when the session ends.
func TestClose_EndsPeersCalls(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := originals(form)
		running := make(chan struct{})
		svc.Handle(70, "wait", signalled(running))
		p, s := serve(t, form, newNode(t, form, svc))
		p.send(msg(open(1, 70)))
		<-running
		require.NoError(t, s.Close())
		p.wantEnd(msg(&classic.Close{Pipe: 1, Abort: &classic.Abort{Code: classic.SessionClosing, Message: "session closed: session closed: closed by the application"}}), goodbye)
	})
}

// One byte at a time gives the same result.
func TestServer_ByteByByte(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, done := rawClient(t, form, newNode(t, form, originals(form)))
		all, err := hex.DecodeString(compact(clientSync) + msg(open(1, 10, "slow"), open(2, 40, []any{"x", map[string]bool{"y": true}})))
		require.NoError(t, err)
		all = recodeAll(t, classic.Simple, form, all)
		for i := range all {
			_, err := p.conn.Write(all[i : i+1])
			require.NoError(t, err)
		}
		p.wantSync()
		got := []string{p.next(), p.next()} // the handlers run side by side
		require.ElementsMatch(t, messages([]classic.Message{result(1, "hello, slow"), result(2, []any{[]any{"x", map[string]bool{"y": true}}})}), got)
		require.NoError(t, (<-done).err)
	})
}

// Calls may arrive together with the SyncConfig.
func TestServer_CallsWithSync(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, _ := rawClient(t, form, newNode(t, form, originals(form)))
		p.send(clientSync, msg(open(1, 20), block(1, "1"), block(1, "2"), eof(1)))
		p.wantSync()
		p.want(messages([]classic.Message{block(1, "1"), block(1, "2"), result(1, int32(3))})...)

		p, done := rawServer(t, form, newNode(t, form, originals(form)))
		p.send(serverSync, msg(open(0x8000, 11, "x"))) // the server may even speak first
		require.Zero(t, p.wantSync().Session)
		p.want(msg(result(0x8000, "*x*")))
		require.NoError(t, (<-done).err)
	})
}

// A loss rate crosses in both directions.
func TestLossRate_BothWays(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, s := dial(t, form, newNode(t, form, originals(form)))
		q, err := s.Open(background, 10, nil, asterisque.WithLoss(100))
		require.NoError(t, err)
		require.NoError(t, q.Send(background, []byte("x")))
		p.want("28000100000a0000", "230001 64 0001 78")
		p.send("230001 ff 0001 79") // a status that is neither a loss rate nor EOF
		b, err := q.Recv(background)
		require.NoError(t, err)
		require.Equal(t, "y", string(b.Payload))
		q.Abort(&asterisque.Abort{Code: 1234, Message: "enough"})
		p.want(msg(&classic.Close{Pipe: 1, Abort: &classic.Abort{Code: 1234, Message: "enough"}}))
		require.Equal(t, codec.Code(1234), codec.AbortOf(q.Err()).Code)
	})
}

// Late Blocks are not answered.
func TestBlocks_Late(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		write(t, w, &message.Open{Pipe: 0})
		p.send(msg(open(0x8000, 10), result(0x8000, nil), block(0x8000, "late"), result(1, nil), block(1, "late"), eof(1), block(2, "for a pipe that never was")))
		for range 3 {
			_, err := w.ReadFrame(most)
			require.NoError(t, err)
		}
		p.next()
		// an answer to any of the other messages could hit a new pipe
		wantAnswer(t, w, p, abort(2, "unknown pipe-id specified: 2"))
		write(t, w, message.Pong{}, &message.Open{Pipe: 2})
		p.want("2800020000000000")
	})
}

// A loss rate reaches the session.
func TestLossRate_ReachesSession(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		p.send(msg(open(0x8000, 10)), "238000e4000178") // a status above EOF has a loss rate below
		_, err := w.ReadFrame(most)
		require.NoError(t, err)
		f, err := w.ReadFrame(most)
		require.NoError(t, err)
		b, err := message.ParseBlock(f)
		require.NoError(t, err)
		require.Equal(t, message.Block{Pipe: 1, Payload: []byte("x"), Meta: message.Meta{Loss: 100}}, b)
	})
}
