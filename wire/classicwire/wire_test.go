package classicwire_test

import (
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

// The suite of package wiretest writes frames of arbitrary bytes, which a translating Wire cannot
// transmit. This file holds the applicable checks.

const most = 1 << 20

// synced returns a Wire after its handshake, and the peer.
func synced(t *testing.T, form classic.Codec) (wire.Wire, *rawPeer) {
	here, there := testkit.TCPPair(t)
	w, p := classicwire.Client(here), newRawPeer(t, form, there)
	t.Cleanup(func() { w.Close() })
	write(t, w, message.Sync{Version: 1, Codecs: []string{form.Name()}})
	p.wantSync()
	p.send(serverSync)
	require.IsType(t, message.Sync{}, readControl(t, w))
	return w, p
}

// appender is a message that can be encoded.
type appender interface{ AppendTo([]byte) []byte }

// opens returns the Opens of the calls from first up to, but not including, end.
func opens(first, end uint64) (list []appender) {
	for n := first; n < end; n++ {
		list = append(list, &message.Open{Pipe: 2 * n})
	}
	return list
}

// takesOpens writes Opens to w, and reads the same number of messages.
func (p *rawPeer) takesOpens(w wire.Wire, first, end uint64) {
	p.t.Helper()
	written := make(chan struct{})
	go func() { // ends as they are read
		defer close(written)
		write(p.t, w, opens(first, end)...)
	}()
	for range end - first {
		p.next()
	}
	<-written
}

func write(t *testing.T, w wire.Wire, list ...appender) {
	t.Helper()
	var frames [][]byte
	for _, m := range list {
		frames = append(frames, m.AppendTo(nil))
	}
	require.NoError(t, w.WriteFrames(frames))
}

func readControl(t *testing.T, w wire.Wire) message.Control {
	t.Helper()
	f, err := w.ReadFrame(most)
	require.NoError(t, err)
	c, err := message.ParseControl(f)
	require.NoError(t, err)
	return c
}

// wantAnswer acts as the session, which answers a Ping, and requires the peer's resulting message.
func wantAnswer(t *testing.T, w wire.Wire, p *rawPeer, m classic.Message) {
	t.Helper()
	require.Equal(t, message.Ping{}, readControl(t, w))
	write(t, w, message.Pong{})
	p.want(msg(m))
}

func readClose(t *testing.T, w wire.Wire) message.Close {
	t.Helper()
	f, err := w.ReadFrame(most)
	require.NoError(t, err)
	c, err := message.ParseClose(f)
	require.NoError(t, err)
	return c
}

// The Sync that the session gets has the abilities of a classic peer.
func TestSync_OfClassicPeer(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		here, there := testkit.TCPPair(t)
		w, p := classicwire.Client(here), newRawPeer(t, form, there)
		defer w.Close()
		p.send(serverSync)
		s := readControl(t, w).(message.Sync)
		require.Equal(t, "01234567-89ab-cdef-fedc-ba9876543210", string(s.Node))
		require.Len(t, s.Session, 16)
		require.Equal(t, []string{form.Name()}, s.Codecs)
		require.EqualValues(t, 1, s.Version)
		require.Zero(t, s.Window+s.Opens+s.Features)
		require.Zero(t, s.Ping+s.Timeout, "no pings")
		require.EqualValues(t, classic.MaxMessage-closeHead[form]+80, s.MaxMessage, "a session counts 80 bytes beside the payload")
	})
}

// A Pong is from the peer itself.
func TestPong_OfPeer(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		write(t, w, message.Ping{N: 7}, message.Ping{N: 8})
		p.want("237fff80", "237fff80") // EOF for a pipe that never was
		p.send(msg(abort(0x7fff, "unknown pipe-id specified: 32767")))
		require.Equal(t, message.Pong{N: 7}, readControl(t, w), "not before the peer has answered")
		p.send(msg(abort(0x7fff, ""), abort(0x7fff, "unrequested"), control('C')))
		require.Equal(t, message.Pong{N: 8}, readControl(t, w))
		require.IsType(t, message.SessionClose{}, readControl(t, w))
	})
}

// Both ends answer Pings.
func TestPing_BothEnds(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		a, b := net.Pipe()
		client := classicwire.Client(a)
		defer client.Close()
		// The session of the node answers.
		go newNode(t, form, originals(form)).Accept(background, classicwire.Server(b))
		write(t, client, message.Sync{Version: 1, Codecs: []string{form.Name()}})
		require.IsType(t, message.Sync{}, readControl(t, client))
		write(t, client, message.Ping{N: 99})
		require.Equal(t, message.Pong{N: 99}, readControl(t, client))
	})
}

// Messages and fields without a classic form are left out.
func TestFrames_WithoutClassicForm(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		write(t, w, message.Credit{Pipe: 1, Limit: 5}, message.Credit{Opens: true, Limit: 5}, message.Stop{Pipe: 1}, message.Drain{None: true}, message.Ack{Count: 3},
			message.UnknownControl{Code: 99}, &message.Block{Pipe: 40, Payload: []byte("of a pipe that is over")}, &message.Close{Pipe: 40})
		write(t, w, &message.Open{Pipe: 0, Function: 10, Meta: message.Meta{TTL: 1, Trace: []byte("x"), Key: []byte("y"), Metadata: []byte("z")}},
			&message.Block{Pipe: 0, Payload: []byte("z"), Meta: message.Meta{TTL: 1, Skipped: 5}},
			&message.Close{Pipe: 0, Abort: &codec.Abort{Code: 2000, Message: "m", Detail: []byte("d"), Ran: codec.Refused}})
		p.want("28000100000a0000", msg(block(1, "z")), "29000102000007d000016d")
	})
}

// Ids run out, and become free again.
func TestIDs_RunOut(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		go io.Copy(io.Discard, p.conn)
		write(t, w, opens(0, classicwire.MaxPipes)...)
		next := uint64(2 * classicwire.MaxPipes)
		write(t, w, &message.Open{Pipe: next}, &message.Block{Pipe: next, End: true})
		c := readClose(t, w)
		require.Equal(t, next, c.Pipe)
		require.Equal(t, codec.Overloaded, c.Abort.Code)
		require.Equal(t, codec.Refused, c.Abort.Ran)

		p.send(msg(result(77, nil)))
		require.EqualValues(t, 2*76, readClose(t, w).Pipe)
		write(t, w, &message.Open{Pipe: next + 2})
		p.send(msg(result(77, "again")))
		require.Equal(t, next+2, readClose(t, w).Pipe)
	})
}

// The id of an aborted call is reused only when the peer knows of the abort.
func TestIDs_AbortedUnknown(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		p.takesOpens(w, 0, classicwire.MaxPipes)
		write(t, w, &message.Close{Pipe: 0, Abort: codec.ErrCanceled})
		p.want(msg(abort(1, "canceled")))
		next := uint64(2 * classicwire.MaxPipes)
		write(t, w, &message.Open{Pipe: next})
		require.Equal(t, codec.Overloaded, readClose(t, w).Abort.Code, "the peer may just be answering")
		p.want("237fff80") // so it is asked

		p.send(msg(result(1, "late"), abort(0x7fff, ""), result(2, "of a running call")))
		require.EqualValues(t, 2, readClose(t, w).Pipe, "no caller gets the late answer")
		write(t, w, &message.Open{Pipe: next + 2}, &message.Open{Pipe: next + 4})
		p.want("2800010000000000", "2800020000000000")
	})
}

// An answer to a later call shows that the peer knows of an abort.
func TestIDs_AbortKnownByAnswer(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		write(t, w, &message.Open{Pipe: 0}, &message.Open{Pipe: 2}, &message.Close{Pipe: 0, Abort: codec.ErrCanceled}, &message.Open{Pipe: 4})
		for range 4 {
			p.next()
		}
		p.send(msg(result(2, nil), result(3, nil)))
		require.EqualValues(t, 2, readClose(t, w).Pipe) // opened before the abort: shows nothing
		require.EqualValues(t, 4, readClose(t, w).Pipe)
		p.takesOpens(w, 3, classicwire.MaxPipes)
		next := uint64(2 * classicwire.MaxPipes)
		write(t, w, &message.Open{Pipe: next}, &message.Open{Pipe: next + 2}, &message.Open{Pipe: next + 4})
		// in the order in which the ids became free
		p.want("2800020000000000", "2800030000000000", "2800010000000000")
	})
}

// After many aborts, the Wire asks the peer.
func TestIDs_ManyAborts(t *testing.T) {
	t.Parallel()
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		asked := 0
		var calls []appender
		for n := range uint64(35_000) { // no call gets an answer, and yet the ids do not run out
			calls = append(calls, &message.Open{Pipe: 2 * n}, &message.Close{Pipe: 2 * n, Abort: codec.ErrCanceled})
			if n%1024 != 1023 {
				continue
			}
			write(t, w, calls...) // a socket holds that many
			for range len(calls) / 2 {
				require.Equal(t, "28", p.next()[:2])
				require.Equal(t, "29", p.next()[:2])
			}
			calls = calls[:0]
			p.want("237fff80")
			asked++
			// The Wire passes the Block to the session as a Ping.
			p.send(msg(abort(0x7fff, ""), block(0x9999, "")))
			// The session has therefore read the abort before it.
			wantAnswer(t, w, p, abort(0x9999, "unknown pipe-id specified: %d", 0x9999-1<<16))
		}
		require.Equal(t, 35_000/1024, asked)
	})
}

// An id of the peer in this side's half is skipped.
func TestIDs_PeerOnThisHalf(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		p.send(msg(open(1, 10), open(0x7fff, 10))) // the latter is kept free
		f, err := w.ReadFrame(most)
		require.NoError(t, err)
		o, err := message.ParseOpen(f)
		require.NoError(t, err)
		require.EqualValues(t, 1, o.Pipe, "the session's ids of the accepting side are odd")
		wantAnswer(t, w, p, abort(0x7fff, "duplicate pipe-id specified: 32767"))
		write(t, w, &message.Open{Pipe: 0}, &message.Close{Pipe: 1}, &message.Open{Pipe: 2})
		p.want("2800020000000000", "2900010100", "2800030000000000")
	})
}

// A frame larger than the session allows is refused.
func TestFrame_TooLarge(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		p.send(msg(open(0x8000, 10, make([]byte, 2000))))
		_, err := w.ReadFrame(1500)
		require.ErrorIs(t, err, wire.ErrFrameTooLarge)

		w, p = synced(t, form)
		m := msg(open(0x8000, 10, make([]byte, 2000)))
		p.send(m)
		_, err = w.ReadFrame(len(m) / 2) // the frame has some bytes more
		require.ErrorIs(t, err, wire.ErrFrameTooLarge)
	})
}

func TestConnection_End(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		w, p := synced(t, form)
		p.send(msg(open(0x8000, 10)))
		p.conn.Close()
		_, err := w.ReadFrame(most)
		require.NoError(t, err, "what has come before")
		for range 2 {
			_, err = w.ReadFrame(most)
			require.Equal(t, io.EOF, err)
		}

		w, p = synced(t, form)
		p.sendPart(4, msg(open(0x8000, 10)))
		p.conn.Close()
		_, err = w.ReadFrame(most)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "in the middle of a message")
	})
}

// Close ends reading and writing.
func TestClose_EndsReadAndWrite(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		a, b := net.Pipe()
		defer b.Close()
		w := classicwire.Client(a)
		results := make(chan error, 2)
		go func() {
			_, err := w.ReadFrame(most)
			results <- err
		}()
		go func() {
			// the peer does not read
			results <- w.WriteFrames([][]byte{message.Sync{Version: 1, Codecs: []string{form.Name()}}.AppendTo(nil)})
		}()
		b.Read(make([]byte, 1)) // the writer is in the middle of the message
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() { w.Close() })
		}
		closing.Wait()
		require.ErrorIs(t, <-results, net.ErrClosed)
		require.ErrorIs(t, <-results, net.ErrClosed)
		require.NoError(t, w.Close())
		_, err := w.ReadFrame(most)
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, w.WriteFrames([][]byte{message.Ping{}.AppendTo(nil)}), net.ErrClosed)
	})
}

// Close does not wait for a peer that does not read.
func TestClose_PeerNotReading(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		a, b := net.Pipe()
		defer b.Close()
		w := classicwire.Client(a)
		go func() {
			p := &rawPeer{t: t, form: form, conn: b}
			p.next()
			p.send(serverSync)
		}()
		write(t, w, message.Sync{Version: 1, Codecs: []string{form.Name()}})
		readControl(t, w)
		require.NoError(t, w.Close(), "the farewell is given up")
	})
}

func TestAddresses(t *testing.T) {
	here, _ := testkit.TCPPair(t)
	w := classicwire.Client(here)
	defer w.Close()
	require.Equal(t, here.LocalAddr(), w.LocalAddr())
	require.Equal(t, here.RemoteAddr(), w.RemoteAddr())

	r, pw := io.Pipe()
	w = classicwire.Server(struct {
		io.ReadCloser
		io.Writer
	}{r, pw})
	defer w.Close()
	require.Equal(t, "local remote", w.LocalAddr().String()+" "+w.RemoteAddr().String())
	require.Equal(t, "classic", w.LocalAddr().Network())
}

// A Wire over TLS returns its state.
func TestTLS_State(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		server, client := testtls.Configs(t)
		server.SessionTicketsDisabled, client.ServerName = true, "localhost"
		a, b := testkit.TCPPair(t)
		dialled, _ := asterisquetest.ConnectOver(t, newNode(t, form, offer()), newNode(t, form, offer()),
			classicwire.Client(tls.Client(a, client)), classicwire.Server(tls.Server(b, server)))
		got, err := echo.Call(background, dialled, "x")
		require.NoError(t, err)
		require.Equal(t, "x", got)
		require.NotNil(t, dialled.Peer().TLS)
		require.Equal(t, "localhost", dialled.Peer().TLS.ServerName)
	})
}
