//go:build !js

package wswire

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// hijackable is a ResponseWriter that gives up its connection in Hijack and discards answers.
type hijackable struct {
	http.ResponseWriter
	conn net.Conn
}

func (h hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// upgraded returns the accepting end of a connection upgraded to a WebSocket.
func upgraded(t *testing.T, c net.Conn) (w wire.Wire) {
	h := newHandler([]Option{WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))})
	h.accept = func(_ context.Context, got wire.Wire) error { w = got; return nil }
	r := httptest.NewRequest("GET", "/", nil)
	for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
		"Sec-WebSocket-Protocol": Subprotocol} {
		r.Header.Set(k, v)
	}
	h.ServeHTTP(hijackable{httptest.NewRecorder(), c}, r)
	require.NotNil(t, w)
	return w
}

// whole returns the payloads of the short binary messages at the beginning of sent. It is the
// simplest such parser.
func whole(sent []byte, max int) []string {
	list := []string{}
	for len(sent) >= 6 && sent[0] == 0x82 && sent[1] >= 0x80 && sent[1] < 0x80+126 && int(sent[1]-0x80) <= min(max, len(sent)-6) {
		n, key, payload := int(sent[1]-0x80), sent[2:6], ""
		for i, b := range sent[6 : 6+n] {
			payload += string([]byte{b ^ key[i%4]})
		}
		list = append(list, payload)
		sent = sent[6+n:]
	}
	return list
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0x82, 0x85, 1, 2, 3, 4, 'h', 'e', 'l', 'l', 'o', 0x82, 0x80, 0, 0, 0, 0, 0x88, 0x82, 0, 0, 0, 0, 3, 232})
	f.Add([]byte{0x02, 0x81, 0, 0, 0, 0, 'h', 0x89, 0x80, 0, 0, 0, 0, 0x80, 0x81, 0, 0, 0, 0, 'i'})
	f.Add([]byte{0x82, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0x81, 0x81, 0, 0, 0, 0, 'h'})
	f.Fuzz(func(t *testing.T, sent []byte) {
		p, q := net.Pipe()
		go io.Copy(io.Discard, p) // ends with p
		w := upgraded(t, q)
		written := make(chan struct{})
		go func() { // ends when w has read all, or is closed
			p.Write(sent)
			p.Close()
			close(written)
		}()
		const max = 100
		got := []string{}
		for {
			frame, err := w.ReadFrame(max)
			if err != nil {
				break
			}
			require.LessOrEqual(t, len(frame), max)
			got = append(got, string(frame))
		}
		want := whole(sent, max)
		require.GreaterOrEqual(t, len(got), len(want))
		require.Equal(t, want, got[:len(want):len(want)], "what is whole arrives whole")
		require.NoError(t, w.Close())
		<-written
	})
}
