//go:build !js

package wswire_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

// A page of another origin is refused unless allowed.
func TestOrigin_Refused(t *testing.T) {
	url, wires := serve(t, wswire.WithOrigins("friend.example", "https://*.safe.example"))
	host := strings.TrimSuffix(strings.TrimPrefix(url, "ws://"), "/rpc")
	for _, test := range []struct {
		origin  string
		allowed bool
	}{
		{"", true}, // no page
		{"http://" + host, true},
		{"https://friend.example", true},
		{"http://FRIEND.example", true},
		{"https://a.safe.example", true},
		{"http://a.safe.example", false},
		{"https://friend.example.evil.example", false},
		{"https://evil.example", false},
		{"null", false}, // a page from a file
	} {
		t.Run(test.origin, func(t *testing.T) {
			header := http.Header{}
			if test.origin != "" {
				header.Set("Origin", test.origin)
			}
			w, err := wswire.Dial(t.Context(), url, wswire.WithHeader(header))
			if test.allowed {
				require.NoError(t, err)
				require.NoError(t, w.Close())
				require.NoError(t, (<-wires).Close())
				return
			}
			require.ErrorContains(t, err, "403 Forbidden")
			require.ErrorContains(t, err, "Origin")
			require.ErrorContains(t, err, "wire: dial "+url)
		})
	}
}

// The answer to a request that is no WebSocket, or without the subprotocol, names what to use.
func TestHandler_OtherRequests(t *testing.T) {
	url, _ := serve(t)
	upgrade := map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
	with := func(more ...string) map[string]string {
		m := map[string]string{}
		for k, v := range upgrade {
			m[k] = v
		}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for _, test := range []struct {
		name, method string
		header       map[string]string
		status       int
		want         string
	}{
		{"plain GET", "GET", nil, 426, "this is a WebSocket of asterisque; connect with the subprotocol asterisque.1"},
		{"POST", "POST", nil, 426, "this is a WebSocket of asterisque"},
		{"no subprotocol", "GET", with(), 400, `offers []`},
		{"other subprotocols", "GET", with("Sec-WebSocket-Protocol", "mqtt, asterisque.2"), 400, `offers ["mqtt" "asterisque.2"]`},
		{"POST that upgrades", "POST", with("Sec-WebSocket-Protocol", "asterisque.1"), 405, "method"},
		{"old WebSocket", "GET", with("Sec-WebSocket-Protocol", "asterisque.1", "Sec-WebSocket-Version", "8"), 400, "version"},
		{"wrong key", "GET", with("Sec-WebSocket-Protocol", "asterisque.1", "Sec-WebSocket-Key", "x"), 400, "Sec-WebSocket-Key"},
	} {
		t.Run(test.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), test.method, "http"+strings.TrimPrefix(url, "ws"), nil)
			require.NoError(t, err)
			for k, v := range test.header {
				req.Header.Set(k, v)
			}
			resp, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.Equal(t, test.status, resp.StatusCode)
			require.Contains(t, string(text), test.want)
		})
	}
	t.Run("the other routes work", func(t *testing.T) {
		resp, err := http.Get("http" + strings.TrimSuffix(strings.TrimPrefix(url, "ws"), "/rpc") + "/health")
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, 200, resp.StatusCode)
	})
}

// The error of a dial has the answer of another kind of server.
func TestDial_OtherServer(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   []string
	}{
		{"nothing", http.NotFound, []string{`"404 Not Found"`, "404 page not found"}},
		{"a redirect", http.RedirectHandler("wss://else.example/", http.StatusMovedPermanently).ServeHTTP, []string{`"301 Moved Permanently"`, "go to wss://else.example/"}},
		{"a page", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") }, []string{`"200 OK"`, "<html>"}},
		{"an error without words", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, []string{`"502 Bad Gateway"`, "no explanation"}},
		{"a WebSocket of something else", func(w http.ResponseWriter, r *http.Request) {
			if c, err := websocket.Accept(w, r, nil); err == nil {
				c.CloseNow()
			}
		}, []string{"did not agree to the subprotocol asterisque.1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := wire.Dial(t.Context(), serveHTTP(t, test.answer), wire.Options{})
			for _, part := range test.want {
				require.ErrorContains(t, err, part)
			}
		})
	}
	t.Run("no HTTP", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		go func() { // ends with its connection
			if c, err := l.Accept(); err == nil {
				c.Read(make([]byte, 1))
				c.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n"))
				c.Close()
			}
		}()
		_, err = wire.Dial(t.Context(), "ws://"+l.Addr().String()+"/rpc", wire.Options{})
		require.ErrorContains(t, err, "malformed HTTP")
	})
}

// A text message is refused with 1003.
func TestMessage_Text(t *testing.T) {
	t.Run("from a page", func(t *testing.T) {
		url, wires := serve(t)
		c := pageWire(t, url)
		w := <-wires
		defer w.Close()
		require.NoError(t, c.Write(t.Context(), websocket.MessageText, []byte("hello")))
		for range 2 {
			_, err := w.ReadFrame(100)
			require.ErrorContains(t, err, "text message")
			require.ErrorContains(t, err, "Uint8Array", "the way out")
		}
		require.NoError(t, w.Close())
		_, _, err := c.Read(t.Context())
		requireClosed(t, err, websocket.StatusUnsupportedData, "text message")
	})
	t.Run("from a server", func(t *testing.T) {
		said := make(chan error, 1)
		url := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{wswire.Subprotocol}})
			if err == nil {
				defer c.CloseNow()
				c.Write(r.Context(), websocket.MessageText, []byte("hello"))
				_, _, err = c.Read(r.Context())
			}
			said <- err
		}))
		w, err := wire.Dial(t.Context(), url, wire.Options{})
		require.NoError(t, err)
		_, err = w.ReadFrame(100)
		require.ErrorContains(t, err, "text message")
		require.NoError(t, w.Close())
		requireClosed(t, <-said, websocket.StatusUnsupportedData, "text message")
	})
}

func requireClosed(t *testing.T, err error, code websocket.StatusCode, reason string) {
	t.Helper()
	var said websocket.CloseError
	require.ErrorAs(t, err, &said)
	require.Equal(t, code, said.Code)
	require.Contains(t, said.Reason, reason)
}

// A message that is too large is refused with 1009, and costs no memory.
func TestMessage_TooLarge(t *testing.T) {
	l := listen(t, "ws://127.0.0.1:0/rpc", wire.Options{})
	a, b := connect(t, l, wire.Options{})
	const max, size = 1000, 32 << 20
	written := make(chan error, 1)
	large := [][]byte{make([]byte, size)}
	go func() { written <- a.WriteFrames(large) }() // ends when b is closed
	spent := weightest.Allocated(func() {
		_, err := b.ReadFrame(max)
		require.ErrorIs(t, err, wire.ErrFrameTooLarge)
		require.ErrorContains(t, err, "1000 bytes allowed")
	})
	require.Less(t, spent, 1<<20, "of %d bytes that are announced, %d are allowed", size, max)
	require.NoError(t, b.WriteFrames([][]byte{[]byte("last words")}), "this side may still say why")
	require.NoError(t, b.Close())
	frame, err := a.ReadFrame(100)
	require.NoError(t, err)
	require.Equal(t, "last words", string(frame))
	_, err = a.ReadFrame(100)
	require.ErrorContains(t, err, "code 1009")
	require.ErrorContains(t, err, "a message of more than 1000 bytes")
	require.NotErrorIs(t, err, io.EOF)
	<-written // with or without an error
}

// A cut connection is no graceful end.
func TestConnection_Cut(t *testing.T) {
	for name, sent := range map[string][]byte{
		"between two messages":     {0x82, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'},
		"inside a message":         {0x82, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0x82, 0x85, 0, 0, 0, 0, 'h', 'e'},
		"inside a header":          {0x82, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0x82, 0xff, 0, 0},
		"behind a full buffer":     append([]byte{0x82, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, make([]byte, 32<<10)...),
		"between two fragments":    {0x82, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0x02, 0x81, 0, 0, 0, 0, 'h'},
		"before a payload":         {0x82, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0x82, 0x85, 0, 0, 0, 0},
		"in the middle of a Close": {0x82, 0x85, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o', 0x88, 0x82, 0, 0, 0, 0, 3},
	} {
		t.Run(name, func(t *testing.T) {
			url, wires := serve(t)
			c := rawUpgrade(t, url)
			w := <-wires
			defer w.Close()
			_, err := c.Write(sent)
			require.NoError(t, err)
			require.NoError(t, c.Close())
			frame, err := w.ReadFrame(100)
			require.NoError(t, err)
			require.Equal(t, "hello", string(frame))
			for range 2 {
				_, err = w.ReadFrame(1 << 20)
				require.ErrorIs(t, err, io.ErrUnexpectedEOF)
				require.ErrorContains(t, err, "without a Close frame")
			}
		})
	}
}

// Broken frames end the Wire.
func TestFrame_Broken(t *testing.T) {
	for name, sent := range map[string]struct {
		bytes []byte
		want  string
	}{
		"not masked":                 {[]byte{0x82, 1, 'h'}, "unmasked"},
		"reserved bits":              {[]byte{0xc2, 0x80, 0, 0, 0, 0}, "rsv"},
		"unknown opcode":             {[]byte{0x83, 0x80, 0, 0, 0, 0}, "opcode"},
		"continuation of nothing":    {[]byte{0x80, 0x80, 0, 0, 0, 0}, "continuation"},
		"message inside a message":   {[]byte{0x02, 0x80, 0, 0, 0, 0, 0x82, 0x80, 0, 0, 0, 0}, "new data message"},
		"ping of more than 125":      {[]byte{0x89, 0xfe, 0, 200, 0, 0, 0, 0}, "control frame"},
		"negative length":            {[]byte{0x82, 0xff, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0}, "negative"},
		"Close with half a code":     {[]byte{0x88, 0x81, 0, 0, 0, 0, 3}, "close payload"},
		"Close with a code too high": {[]byte{0x88, 0x82, 0, 0, 0, 0, 255, 255}, "status code"},
	} {
		t.Run(name, func(t *testing.T) {
			url, wires := serve(t)
			c := rawUpgrade(t, url)
			w := <-wires
			defer w.Close()
			_, err := c.Write(sent.bytes)
			require.NoError(t, err)
			_, err = w.ReadFrame(100)
			require.ErrorContains(t, err, sent.want)
			require.NoError(t, w.Close())
		})
	}
}

// The reason of the peer's Close is in the error.
func TestClose_ReasonOfPeer(t *testing.T) {
	for _, test := range []struct {
		code websocket.StatusCode
		good bool
	}{
		{websocket.StatusNormalClosure, true},
		{websocket.StatusGoingAway, true}, // the page was left
		{websocket.StatusNoStatusRcvd, true},
		{websocket.StatusInternalError, false},
		{4000, false},
	} {
		url, wires := serve(t)
		c := pageWire(t, url)
		w := <-wires
		closed := make(chan error, 1)
		go func() { closed <- c.Close(test.code, "because") }() // ends when w has read it
		for range 2 {
			_, err := w.ReadFrame(100)
			if test.good {
				require.Equal(t, io.EOF, err, test.code)
				continue
			}
			require.False(t, errors.Is(err, io.EOF))
			require.ErrorContains(t, err, "because")
			require.ErrorContains(t, err, "the peer closed the WebSocket with code")
		}
		<-closed
		err := w.WriteFrames([][]byte{[]byte("anybody there?")})
		require.Error(t, err)
		require.NotErrorIs(t, err, net.ErrClosed, "this side has not called Close")
		require.NoError(t, w.Close())
	}
}

// A refused peer is logged.
func TestHandler_LogsRefusals(t *testing.T) {
	lines := make(lines, 2)
	log := slog.New(slog.NewTextHandler(lines, nil))
	url := serveHTTP(t, wswire.Handler(socketWire{}, wswire.WithLogger(log)))
	w, err := wire.Dial(t.Context(), url, wire.Options{})
	require.NoError(t, err)
	_, err = w.ReadFrame(100)
	require.Equal(t, io.EOF, err)
	require.NoError(t, w.Close())
	require.Contains(t, <-lines, "not today")
	resp, err := http.Get("http" + strings.TrimPrefix(url, "ws"))
	require.NoError(t, err)
	resp.Body.Close()
	require.Contains(t, <-lines, "status=426")
}

// Memory follows the received bytes, not the announced length.
func TestMessage_Memory(t *testing.T) {
	url, wires := serve(t)
	c := rawUpgrade(t, url)
	w := <-wires
	defer w.Close()
	// The header announces 1 GiB.
	sent := append([]byte{0x82, 0xff, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 40<<10)...)
	_, err := c.Write(sent)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	spent := weightest.Allocated(func() {
		_, err := w.ReadFrame(1<<31 - 1)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	})
	require.Less(t, spent, 1<<20)
}
