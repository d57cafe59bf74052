package classicwire_test

import (
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

// rawPeer is the other side of a classic session; the test sends and receives its bytes.
type rawPeer struct {
	t    *testing.T
	form classic.Codec
	conn net.Conn
	buf  []byte
}

// patience is the time that a rawPeer waits for an expected message.
const patience = 2 * time.Minute

// outcome is the result of a handshake.
type outcome struct {
	s   *asterisque.Session
	err error
}

// rawClient connects a rawPeer to a node that serves.
func rawClient(t *testing.T, form classic.Codec, n *asterisque.Node) (*rawPeer, <-chan outcome) {
	here, there := testkit.TCPPair(t)
	done := make(chan outcome, 1)
	go func() {
		s, err := n.Accept(background, classicwire.Server(there))
		done <- outcome{s, err}
	}()
	return newRawPeer(t, form, here), done
}

// rawServer connects a node to a rawPeer.
func rawServer(t *testing.T, form classic.Codec, n *asterisque.Node) (*rawPeer, <-chan outcome) {
	here, there := testkit.TCPPair(t)
	done := make(chan outcome, 1)
	go func() {
		s, err := n.Attach(background, classicwire.Client(here))
		done <- outcome{s, err}
	}()
	return newRawPeer(t, form, there), done
}

func newRawPeer(t *testing.T, form classic.Codec, c net.Conn) *rawPeer {
	require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
	return &rawPeer{t: t, form: form, conn: c}
}

// send writes messages, given as hexadecimal digits of Simple, in one segment. Bytes after the last
// valid message of Simple are written as they are.
func (p *rawPeer) send(messages ...string) {
	p.t.Helper()
	b, err := hex.DecodeString(compact(strings.Join(messages, "")))
	require.NoError(p.t, err)
	p.write(recodeAll(p.t, classic.Simple, p.form, b))
}

// write writes bytes unchanged.
func (p *rawPeer) write(b []byte) {
	p.t.Helper()
	require.NoError(p.t, p.conn.SetWriteDeadline(time.Now().Add(patience)))
	_, err := p.conn.Write(b)
	require.NoError(p.t, err)
}

// sendPart writes the first n bytes of a message.
func (p *rawPeer) sendPart(n int, message string) {
	p.t.Helper()
	b, err := hex.DecodeString(message)
	require.NoError(p.t, err)
	p.write(recodeAll(p.t, classic.Simple, p.form, b)[:n])
}

// next returns the next message in hexadecimal digits of Simple, or "" at the end of the
// connection.
func (p *rawPeer) next() string {
	p.t.Helper()
	for {
		_, n, err := p.form.Parse(p.buf, classic.MaxMessage)
		if err == nil {
			s := hex.EncodeToString(recodeAll(p.t, p.form, classic.Simple, p.buf[:n]))
			p.buf = p.buf[n:]
			return s
		}
		require.ErrorIs(p.t, err, classic.ErrIncomplete)
		room := make([]byte, 4096)
		require.NoError(p.t, p.conn.SetReadDeadline(time.Now().Add(patience)))
		n, err = p.conn.Read(room)
		p.buf = append(p.buf, room[:n]...)
		if n == 0 && err != nil {
			require.NotErrorIs(p.t, err, net.ErrClosed)
			var timeout net.Error
			if errors.As(err, &timeout) {
				require.False(p.t, timeout.Timeout(), "nothing came")
			}
			require.Empty(p.t, p.buf, "the end is between messages")
			return ""
		}
	}
}

// want requires that the next messages equal these.
func (p *rawPeer) want(messages ...string) {
	p.t.Helper()
	for _, m := range messages {
		require.Equal(p.t, compact(m), p.next())
	}
}

// compact returns s without spaces.
func compact(s string) string { return strings.ReplaceAll(s, " ", "") }

// wantEnd requires that the connection ends after these messages.
func (p *rawPeer) wantEnd(messages ...string) {
	p.t.Helper()
	p.want(messages...)
	require.Equal(p.t, "", p.next(), "the connection ends")
}

// wantSync requires a SyncConfig and returns it.
func (p *rawPeer) wantSync() classic.Sync {
	p.t.Helper()
	b, err := hex.DecodeString(p.next())
	require.NoError(p.t, err)
	m, _, err := classic.Simple.Parse(b, classic.MaxMessage)
	require.NoError(p.t, err)
	c, ok := m.(*classic.Control)
	require.True(p.t, ok, "%T", m)
	s, err := classic.ParseSync(c.Data)
	require.NoError(p.t, err)
	return s
}

const (
	clientSync = "2a510032 0001 0123456789abcdeffedcba9876543210 00000000000000000000000000000000 00000145f680b07b 00000003 00000708"
	serverSync = "2a510032 0001 0123456789abcdeffedcba9876543210 11111111222233334444555555555555 00000145f680b1c8 00000003 00000708"
	goodbye    = "2a430000"
)

// serve completes the handshake of a rawPeer that has connected to a node, and returns the node's
// session.
func serve(t *testing.T, form classic.Codec, n *asterisque.Node) (*rawPeer, *asterisque.Session) {
	p, done := rawClient(t, form, n)
	p.send(clientSync)
	p.wantSync()
	o := <-done
	require.NoError(t, o.err)
	return p, o.s
}

// dial completes the handshake of a rawPeer that a node has connected to, and returns the node's
// session.
func dial(t *testing.T, form classic.Codec, n *asterisque.Node) (*rawPeer, *asterisque.Session) {
	p, done := rawServer(t, form, n)
	p.wantSync()
	p.send(serverSync)
	o := <-done
	require.NoError(t, o.err)
	return p, o.s
}
