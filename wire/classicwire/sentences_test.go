package classicwire_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/pipe"
)

// Each test covers one sentence of the description of the original that its records alone do not
// prove, in the order of the description.

// A server may have any version, and grant anything.
func TestServer_AnyVersion(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		for _, tail := range []string{"0000 | 00000003 00000708", "7fff | ffffffff ffffffff"} {
			version, granted, _ := strings.Cut(tail, " | ")
			p, done := rawServer(t, form, newNode(t, form, originals(form)))
			p.wantSync()
			p.send("2a510032", version, "0123456789abcdeffedcba9876543210 11111111222233334444555555555555 00000145f680b1c8", granted)
			o := <-done
			require.NoError(t, o.err)
			go o.s.Call(background, 10, nil) // ends with the session
			p.want("28000100000a0000")
		}
	})
}

// A result of nothing is null, as Java's void and Scala's Unit are on the wire, in both directions.
func TestResult_Null(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, s := serve(t, form, newNode(t, form, offer()))
		p.send(msg(open(1, nothing.Number())))
		p.want("2900010100")

		for _, said := range []string{"2980000100", "29800001 220004766f696400"} {
			// null, decoded into the struct void
			called := make(chan error, 1)
			go func() { // ends with the answer
				_, err := nothing.Call(background, s, struct{}{})
				called <- err
			}()
			open := p.next()
			require.Equal(t, "00003c0000", open[6:], "no parameters")
			p.send("29", open[2:6], said[6:])
			require.NoError(t, <-called)
		}
	})
}

// The priority is signed, and reaches both sides.
func TestPriority_Signed(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := originals(form)
		asked := make(chan int8, 1)
		svc.Handle(70, "priority", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			asked <- int8(p.Priority())
			return nil, nil
		})
		p, s := serve(t, form, newNode(t, form, svc))
		p.send("280001 f0 0046 0000")
		require.EqualValues(t, -16, <-asked)
		p.want(msg(result(1, nil)))
		go s.Call(background, 11, nil, asterisque.WithPriority(-3)) // ends with the session
		p.want("288000 fd 000b 0000")
	})
}

// The end of one direction does not end the other.
func TestBlocks_AfterCallersEnd(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := originals(form)
		svc.Handle(70, "after", func(ctx context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
			for {
				if _, err := p.Recv(ctx); err == io.EOF {
					break
				} else if err != nil {
					return nil, err
				}
			}
			if err := p.Send(ctx, []byte("after")); err != nil {
				return nil, err
			}
			return nil, p.CloseSend()
		})
		p, _ := serve(t, form, newNode(t, form, svc))
		p.send(msg(open(1, 70), block(1, "x"), eof(1)))
		p.want(msg(block(1, "after")), msg(eof(1)), msg(result(1, nil)))
	})
}

// An id is reused at once after either Close.
func TestIDs_ReusedAfterClose(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, s := serve(t, form, newNode(t, form, originals(form)))
		p.send(msg(open(1, 10, "a")))
		p.want(msg(result(1, "hello, a")))
		p.send(msg(open(1, 10, "b")))
		p.want(msg(result(1, "hello, b")))
		p.send(msg(open(1, 20), result(1, nil), open(1, 10, "c"))) // the caller ends the first
		p.want(msg(result(1, "hello, c")))
		require.NoError(t, s.Err())
	})
}

// A second Open does not affect the pipe.
func TestOpen_Twice(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, _ := serve(t, form, newNode(t, form, originals(form)))
		p.send(msg(open(1, 20), open(1, 20)))
		p.want(msg(abort(1, "duplicate pipe-id specified: 1")))
		p.send(msg(block(1, "7"), eof(1)))
		p.want(msg(block(1, "7")), msg(result(1, int32(7))))
	})
}

// Each Block for an unknown pipe is answered.
func TestBlock_UnknownPipe(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		const count = 300 // more than the Pongs that a session sends in a second
		for role, begin := range map[string]func(*testing.T, classic.Codec, *asterisque.Node) (*rawPeer, *asterisque.Session){"server": serve, "client": dial} {
			p, s := begin(t, form, newNode(t, form, originals(form)))
			var say, want []string
			for id := range uint16(count) {
				say = append(say, msg(block(1000+id, "x")))
				want = append(want, msg(abort(1000+id, "unknown pipe-id specified: %d", 1000+id)))
			}
			p.send(say...)
			p.want(want...)
			require.NoError(t, s.Err(), role)
		}
	})
}

// However many answers a peer provokes without reading them, at most mostOwed wait.
func TestAnswers_Bounded(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		const asked = 5000
		var say []string
		for range asked {
			say = append(say, msg(block(99, "")))
		}
		p.send(strings.Join(say, ""), msg(open(0x8000, 10)))
		require.IsType(t, message.Ping{}, readControl(t, w), "one Ping for all")
		f, err := w.ReadFrame(most)
		require.NoError(t, err)
		kind, err := message.TypeOf(f)
		require.NoError(t, err)
		require.Equal(t, message.OpenType, kind)
		write(t, w, message.Pong{})
		require.NoError(t, w.Close())
		answers := 0
		for m := p.next(); m != "" && m != goodbye; m = p.next() {
			require.Equal(t, msg(abort(99, "unknown pipe-id specified: 99")), m)
			answers++
		}
		require.Equal(t, 1024, answers)
	})
}

// Unread Blocks are dropped.
func TestBlocks_Unread(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, s := serve(t, form, newNode(t, form, originals(form)))
		p.send(msg(open(1, 30, "hi"), block(1, "x"), block(1, "y"), eof(1)))
		p.want(msg(open(0x8000, 11, "hi")))
		p.send(msg(block(0x8000, "z"), eof(0x8000))) // this side's call reads none either
		p.send(msg(result(0x8000, "*hi*")))
		p.want(msg(result(1, "*hi*")))
		require.NoError(t, s.Err())

		p, s = dial(t, form, newNode(t, form, originals(form)))
		called := make(chan error, 1)
		go func() { // ends with the answer
			_, err := asterisque.Func[string, string](10, "greet").Call(background, s, "x")
			called <- err
		}()
		p.want(msg(open(1, 10, "x")))
		p.send(msg(block(1, "y"), block(1, "z"), eof(1), result(1, "ok")))
		require.NoError(t, <-called)
		require.NoError(t, s.Err())
	})
}

// A function of the original that throws leaves its pipe open: it is closed before its id is used
// again, because the next call with the id would look like a second Open.
func TestIDs_KeptByPeer(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		threw := msg(abort(7, "internal error"))
		const ids = 0x7ffe // of this side
		var opens [][]byte
		for n := range uint64(ids) {
			opens = append(opens, (&message.Open{Pipe: 2 * n}).AppendTo(nil))
		}
		go w.WriteFrames(opens) // ends as they are read
		for range ids {
			p.next()
		}
		p.send(threw)
		require.EqualValues(t, 2*6, readClose(t, w).Pipe)
		for n := range uint64(2) { // only the first needs it
			next := 2 * (ids + n)
			write(t, w, &message.Open{Pipe: next})
			if n == 0 {
				p.want(msg(&classic.Close{Pipe: 7}))
			}
			p.want("2800070000000000")
			p.send(msg(result(7, nil)))
			require.Equal(t, next, readClose(t, w).Pipe)
		}
	})
}

// The largest result passes, and a larger one fails its call.
func TestResult_Largest(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		svc := originals(form)
		asterisque.Func[int32, string](70, "sized").Handle(svc, func(_ context.Context, n int32) (string, error) {
			return strings.Repeat("x", int(n)), nil
		})
		s, _ := connect(t, form, svc, offer())
		sized := asterisque.Func[int32, string](70, "sized")
		got, err := sized.Call(background, s, largestResult)
		require.NoError(t, err)
		require.Len(t, got, largestResult)
		_, err = sized.Call(background, s, largestResult+1) // the original closes the connection
		require.ErrorContains(t, err, "too large: the result")
		_, err = sized.Call(background, s, 1)
		require.NoError(t, err)
	})
}

// Queued answers are sent to a peer that sends nothing more.
func TestAnswers_PeerSilent(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, s := serve(t, form, newNode(t, form, originals(form)))
		p.send(msg(open(1, 10, "x")))
		p.want(msg(result(1, "hello, x")))
		require.NoError(t, p.conn.(*net.TCPConn).CloseWrite())
		if m := p.next(); m != "" { // the session may say that it ends before the connection does
			require.Equal(t, goodbye, m)
			p.wantEnd()
		}
		<-s.Done()
	})
}
