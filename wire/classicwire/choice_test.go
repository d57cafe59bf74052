package classicwire_test

import (
	"encoding/hex"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/classic"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire/classicwire"
)

// other returns the codec that is not form.
func other(form classic.Codec) classic.Codec {
	if form == classic.Simple {
		return classic.MessagePack
	}
	return classic.Simple
}

// both returns a node with both codecs that prefers one of them.
func both(t *testing.T, prefers classic.Codec) *asterisque.Node {
	return newNode(t, prefers, originals(prefers), asterisque.WithCodecs(prefers, other(prefers)))
}

// A server with both codecs uses that of its client.
func TestCodecs_ServerFollows(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, done := rawClient(t, form, both(t, other(form)))
		p.send(clientSync, msg(open(1, 10, "x")))
		p.wantSync()
		p.want(msg(result(1, "hello, x")))
		require.NoError(t, (<-done).err)
	})
}

// A client with both codecs uses the first.
func TestCodecs_ClientFirst(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, done := rawServer(t, form, both(t, form))
		require.EqualValues(t, 1, p.wantSync().Version)
		p.send(serverSync)
		require.NoError(t, (<-done).err)
	})
}

// A client with both codecs follows a server that sends first.
func TestCodecs_ClientFollows(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		here, there := testkit.TCPPair(t)
		w, p := classicwire.Client(here), newRawPeer(t, form, there)
		defer w.Close()
		p.send(serverSync)
		require.Equal(t, []string{form.Name()}, readControl(t, w).(message.Sync).Codecs)
		write(t, w, message.Sync{Version: 1, Codecs: []string{"cbor", other(form).Name(), form.Name()}})
		p.wantSync()
	})
}

// A session is not possible, but the peer learns the end in its own codec: otherwise a client of
// the original reconnects forever.
func TestCodecs_Mismatch(t *testing.T) {
	eachCodec(t, func(t *testing.T, form classic.Codec) {
		p, done := rawClient(t, other(form), newNode(t, form, originals(form)))
		p.send(clientSync)
		o := <-done
		require.ErrorIs(t, o.err, asterisque.ErrHandshake)
		require.ErrorContains(t, o.err, "the peer offers "+other(form).Name()+", this side "+form.Name())
		p.wantEnd(goodbye)

		p, done = rawServer(t, form, newNode(t, form, originals(form)))
		p.wantSync()
		p.form = other(form)
		p.sendPart(7, compact(serverSync)) // enough to recognize the codec
		o = <-done
		require.ErrorIs(t, o.err, asterisque.ErrHandshake)
		require.ErrorContains(t, o.err, "the peer has the "+other(form).String()+" of the classic protocol, and this side the "+form.String())
		b, err := io.ReadAll(p.conn)
		require.NoError(t, err)
		require.Equal(t, map[classic.Codec]string{classic.Simple: "2a430000", classic.MessagePack: "2a43a0"}[other(form)], hex.EncodeToString(b))
	})
}

// TestAttack_MessagePack ends a session as soon as a message is known to be invalid, and with
// little memory.
func TestAttack_MessagePack(t *testing.T) {
	for name, say := range map[string]string{
		"a map32 of 2^32-1":    "2801000a01 21 dfffffffff",
		"an array32":           "2801000a01 20 ddffffffff",
		"an ext as a number":   "2801000a01 06 c9ffffffff00",
		"a list of 2^31":       "2801000a01 20 ce80000000",
		"pipe 0x8000 unsigned": "28cd80000a00",
		"a count unsigned":     "2801000acd9c40",
		"EOF unsigned":         "2301cc80",
		"40,000 as 65,535":     "2801000a01 20 ff 20 ff 20 ff",
		"a text of 2^32-1":     "2801000a01 0b dbffffffff",
		"a Block of 61440":     "230100 daf000" + hex.EncodeToString(make([]byte, 61440)),
		"a tag in two bytes":   "cc2801000a00",
		"the byte of nothing":  "c1",
	} {
		t.Run(name, func(t *testing.T) {
			p, s := serve(t, classic.MessagePack, newNode(t, classic.MessagePack, originals(classic.MessagePack)))
			b, err := hex.DecodeString(compact(say))
			require.NoError(t, err)
			p.write(b)
			p.wantEnd(goodbye)
			<-s.Done()
			require.ErrorIs(t, s.Err(), asterisque.ErrProtocol)
		})
	}
}
