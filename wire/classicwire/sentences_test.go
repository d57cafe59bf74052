package classicwire_test

import (
	"context"
	"encoding/hex"
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

// Each test is of a sentence about the original that its records alone do not show, in the order of
// its description.

// The third byte tells which codec the peer has. The session cannot be, but the peer learns that it
// is over: a client of the original connects again for ever where it does not.
func TestAPeerWithTheOtherCodecIsToldInIts(t *testing.T) {
	const packed = "2a51da00320001"
	for role, raw := range map[string]func(*testing.T, *asterisque.Node) (*rawPeer, <-chan outcome){"server": rawClient, "client": rawServer} {
		p, done := raw(t, newNode(t, originals()))
		if role == "client" {
			p.wantSync()
		}
		p.send(packed)
		o := <-done
		require.ErrorIs(t, o.err, asterisque.ErrHandshake, role)
		require.ErrorContains(t, o.err, "the SimpleCodec: set that in its Options")
		b, err := io.ReadAll(p.conn)
		require.NoError(t, err)
		require.Equal(t, "2a43a0", hex.EncodeToString(b), "a packed Control C")
	}
}

func TestAServerMayHaveAnyVersionAndGrantAnything(t *testing.T) {
	for _, tail := range []string{"0000 | 00000003 00000708", "7fff | ffffffff ffffffff"} {
		version, granted, _ := strings.Cut(tail, " | ")
		p, done := rawServer(t, newNode(t, originals()))
		p.wantSync()
		p.send("2a510032", version, "0123456789abcdeffedcba9876543210 11111111222233334444555555555555 00000145f680b1c8", granted)
		o := <-done
		require.NoError(t, o.err)
		go o.s.Call(background, 10, nil) // ends with the session
		p.want("28000100000a0000")
	}
}

// Nothing is what Java's void and Scala's Unit are on the wire, in both directions.
func TestNoResultIsNullBothWays(t *testing.T) {
	p, s := serve(t, newNode(t, offer()))
	p.send(msg(open(1, nothing.Number())))
	p.want("2900010100")

	for _, said := range []string{"2980000100", "29800001 220004766f696400"} {
		// null, and the struct void
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
}

func TestThePriorityIsSignedAndReachesBothSides(t *testing.T) {
	svc := originals()
	asked := make(chan int8, 1)
	svc.Handle(70, "priority", func(_ context.Context, p *pipe.Pipe, _ []byte) ([]byte, error) {
		asked <- int8(p.Priority())
		return nil, nil
	})
	p, s := serve(t, newNode(t, svc))
	p.send("280001 f0 0046 0000")
	require.EqualValues(t, -16, <-asked)
	p.want(msg(result(1, nil)))
	go s.Call(background, 11, nil, asterisque.WithPriority(-3)) // ends with the session
	p.want("288000 fd 000b 0000")
}

// The end of one direction leaves the other open.
func TestACalleeSendsAfterItsCallerHasEnded(t *testing.T) {
	svc := originals()
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
	p, _ := serve(t, newNode(t, svc))
	p.send(msg(open(1, 70), block(1, "x"), eof(1)))
	p.want(msg(block(1, "after")), msg(eof(1)), msg(result(1, nil)))
}

func TestAnIdIsUsedAgainAtOnceAfterEitherClose(t *testing.T) {
	p, s := serve(t, newNode(t, originals()))
	p.send(msg(open(1, 10, "a")))
	p.want(msg(result(1, "hello, a")))
	p.send(msg(open(1, 10, "b")))
	p.want(msg(result(1, "hello, b")))
	p.send(msg(open(1, 20), result(1, nil), open(1, 10, "c"))) // the caller ends the first
	p.want(msg(result(1, "hello, c")))
	require.NoError(t, s.Err())
}

func TestAPipeIsNotTouchedByASecondOpen(t *testing.T) {
	p, _ := serve(t, newNode(t, originals()))
	p.send(msg(open(1, 20), open(1, 20)))
	p.want(msg(abort(1, "duplicate pipe-id specified: 1")))
	p.send(msg(block(1, "7"), eof(1)))
	p.want(msg(block(1, "7")), msg(result(1, int32(7))))
}

func TestEachBlockForAnUnknownPipeIsAnswered(t *testing.T) {
	const count = 300 // more than the Pongs that a session sends in a second
	for role, begin := range map[string]func(*testing.T, *asterisque.Node) (*rawPeer, *asterisque.Session){"server": serve, "client": dial} {
		p, s := begin(t, newNode(t, originals()))
		var say, want []string
		for id := range uint16(count) {
			say = append(say, msg(block(1000+id, "x")))
			want = append(want, msg(abort(1000+id, "unknown pipe-id specified: %d", 1000+id)))
		}
		p.send(say...)
		p.want(want...)
		require.NoError(t, s.Err(), role)
	}
}

// However many answers a peer provokes without reading them, no more wait than mostOwed.
func TestAnswersThatWaitAreBounded(t *testing.T) {
	w, p := synced(t)
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
}

func TestBlocksThatNobodyReadsAreDropped(t *testing.T) {
	p, s := serve(t, newNode(t, originals()))
	p.send(msg(open(1, 30, "hi"), block(1, "x"), block(1, "y"), eof(1)))
	p.want(msg(open(0x8000, 11, "hi")))
	p.send(msg(block(0x8000, "z"), eof(0x8000))) // this side's call reads none either
	p.send(msg(result(0x8000, "*hi*")))
	p.want(msg(result(1, "*hi*")))
	require.NoError(t, s.Err())

	p, s = dial(t, newNode(t, originals()))
	called := make(chan error, 1)
	go func() { // ends with the answer
		_, err := asterisque.Func[string, string](10, "greet").Call(background, s, "x")
		called <- err
	}()
	p.want(msg(open(1, 10, "x")))
	p.send(msg(block(1, "y"), block(1, "z"), eof(1), result(1, "ok")))
	require.NoError(t, <-called)
	require.NoError(t, s.Err())
}

// A function of the original that throws leaves its pipe behind, and the next call with the id
// would be taken for a second one.
func TestAPipeThatThePeerHasKeptIsClosedBeforeItsIdIsUsedAgain(t *testing.T) {
	w, p := synced(t)
	threw := msg(abort(7, "internal error"))
	const ids = 0x7ffe // of this side
	var opens [][]byte
	for n := range uint64(ids) {
		opens = append(opens, (&message.Open{Pipe: 2 * n}).AppendTo(nil))
	}
	go w.WriteFrames(opens) // ends as they are read
	_, err := io.ReadFull(p.conn, make([]byte, 8*ids))
	require.NoError(t, err)
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
}

func TestTheLargestResultPassesAndALargerOneFailsItsCall(t *testing.T) {
	svc := originals()
	asterisque.Func[int32, string](70, "sized").Handle(svc, func(_ context.Context, n int32) (string, error) {
		return strings.Repeat("x", int(n)), nil
	})
	s, _ := connect(t, svc, offer())
	sized := asterisque.Func[int32, string](70, "sized")
	// as of a parameter, for which a message has more beside it
	const largest = classic.MaxMessage - 8 - 3
	got, err := sized.Call(background, s, largest)
	require.NoError(t, err)
	require.Len(t, got, largest)
	_, err = sized.Call(background, s, largest+1) // the original closes the connection
	require.Error(t, err)
	_, err = sized.Call(background, s, 1)
	require.NoError(t, err)
}

func TestAnswersThatAreReadyGoOutToAPeerThatSendsNoMore(t *testing.T) {
	p, s := serve(t, newNode(t, originals()))
	p.send(msg(open(1, 10, "x")))
	p.want(msg(result(1, "hello, x")))
	require.NoError(t, p.conn.(*net.TCPConn).CloseWrite())
	p.wantEnd()
	<-s.Done()
}
