//go:build !js

package wswire_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

// victim is a server with a node.
type victim struct {
	t       *testing.T
	scheme  string
	address string
	client  *tls.Config // nil without TLS
	*attack.Watch
}

// newVictim returns a victim without a server, and its node.
func newVictim(t *testing.T, opts ...asterisque.Option) (*victim, *asterisque.Node) {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	v := &victim{t: t, Watch: attack.NewWatch(t)}
	node := asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { node.Close() })
	return v, node
}

// serveVictim returns a victim with a node that serves a listener.
func serveVictim(t *testing.T, scheme string, opts ...asterisque.Option) *victim {
	v, node := newVictim(t, opts...)
	var o wire.Options
	if scheme == "wss" {
		server, client := tlsOptions(t)
		o, v.client = server, client.TLS
	}
	l, err := wire.Listen(t.Context(), scheme+"://127.0.0.1:0/rpc", o)
	require.NoError(t, err)
	go node.Serve(context.Background(), l) // ends with the node
	v.scheme, v.address = scheme, strings.TrimSuffix(strings.TrimPrefix(l.URL(), scheme+"://"), "/rpc")
	return v
}

// dial connects from an address of this machine.
func (v *victim) dial(from string) (net.Conn, error) {
	return attack.DialFrom(from, v.address)
}

// farAway listens for connections, and relays each to v from the address from, after 50 ms.
func (v *victim) farAway(from string) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(v.t, err)
	v.t.Cleanup(func() { l.Close() })
	go func() { // ends with l
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go v.carry(c, from) // ends with c
		}
	}()
	return l.Addr().String()
}

func (v *victim) carry(c net.Conn, from string) {
	defer c.Close()
	there, err := v.dial(from)
	if err != nil {
		return
	}
	v.LongPath()
	go func() { // ends with there
		defer c.Close()
		io.Copy(c, there)
	}()
	defer there.Close()
	io.Copy(there, c)
}

// honest makes 20 sessions, four at a time, on connections with a delay of 50 ms, and returns the
// number of successful calls.
func (v *victim) honest(from string) int {
	node := asterisque.NewNode(asterisque.WithTLS(v.client))
	defer node.Close()
	url := v.scheme + "://" + v.farAway(from) + "/rpc"
	return attack.Honest(v.t, 20, 4, func() error {
		s, err := node.Dial(context.Background(), url)
		if err != nil {
			return err
		}
		defer s.Close()
		_, err = echo.Call(context.Background(), s, "honest")
		return err
	})
}

func TestAttack_UnreadAnswers(t *testing.T) {
	for name, request := range map[string]string{
		"elsewhere":     "GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n",
		"no WebSocket":  "GET /rpc HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
		"without a key": "GET /rpc HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: asterisque.1\r\n\r\n",
	} {
		requests := []byte(strings.Repeat(request, 1000))
		t.Run(name, func(t *testing.T) {
			t.Run("beside honest peers", func(t *testing.T) { besidePipelines(t, requests) })
			t.Run("until they are cut off", func(t *testing.T) { cutOff(t, requests) })
		})
	}
}

// besidePipelines requires that honest peers are admitted while 100 connections send requests.
func besidePipelines(t *testing.T, requests []byte) {
	v := serveVictim(t, "ws", asterisque.WithTimeouts(asterisque.Timeouts{Handshake: hangs}))
	conns, wait := v.pipeline(requests)
	in := v.honest("127.0.0.2")
	for _, c := range conns {
		c.Close()
	}
	wait()
	attack.Bounded(t, "pipelined requests to a WebSocket, honest handshakes that failed", 20-in, 0)
	attack.Bounded(t, "the same, goroutines", v.Most(), 100*3+100)
	v.Quiet()
}

func cutOff(t *testing.T, requests []byte) {
	v := serveVictim(t, "ws", asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 200 * time.Millisecond}))
	_, wait := v.pipeline(requests)
	wait()
	attack.Bounded(t, "pipelined requests until the peer is cut off, goroutines", v.Most(), 100*3+100)
	v.Quiet()
}

// pipeline sends requests on 100 connections, and does not read the answers. wait waits until all
// are closed.
func (v *victim) pipeline(requests []byte) (conns []net.Conn, wait func()) {
	var attackers sync.WaitGroup
	for range 100 {
		c, err := v.dial("127.0.0.1")
		require.NoError(v.t, err)
		v.t.Cleanup(func() { c.Close() })
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		attackers.Go(func() {
			for err == nil {
				_, err = c.Write(requests)
			}
		})
		conns = append(conns, c)
	}
	v.Look()
	return conns, attackers.Wait
}

func TestAttack_ManySessions(t *testing.T) {
	v, node := newVictim(t, asterisque.WithAdmission(asterisque.Admission{PerAddress: 2}))
	s := httptest.NewServer(wswire.Handler(node))
	defer s.Close()
	here := asterisque.NewNode()
	defer here.Close()
	var in, told atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			_, err := here.Dial(context.Background(), "ws"+strings.TrimPrefix(s.URL, "http"))
			switch {
			case err == nil:
				in.Add(1)
			case strings.Contains(err.Error(), "503 Service Unavailable"):
				told.Add(1)
			}
		})
	}
	all.Wait()
	v.Look()
	attack.Bounded(t, "WebSocket sessions of an address with Admission.PerAddress of 2", int(in.Load()), 2)
	require.EqualValues(t, 50, in.Load()+told.Load(), "the others are refused by HTTP")
	require.Positive(t, in.Load())
}

func TestAttack_SilentDials(t *testing.T) {
	for scheme, half := range map[string]string{"ws": "GET /rpc HTTP/1.1\r\nHost: ", "wss": "\x16\x03\x01"} {
		t.Run(scheme, func(t *testing.T) { dialSilently(t, scheme, half) })
	}
}

// dialSilently makes connections that send half and then nothing.
func dialSilently(t *testing.T, scheme, half string) {
	v := serveVictim(t, scheme)
	stop := attack.Silent(func() (net.Conn, error) { return v.dial("127.0.0.1") }, half)
	in := v.honest("127.0.0.1")
	dials := stop()
	attack.Bounded(t, "silent dials to "+scheme+", honest handshakes that failed", 20-in, 0)
	attack.Bounded(t, "the same, goroutines", v.Most(), 1024+200)
	require.Greater(t, dials, 20)
}

func TestAttack_SilentWebSockets(t *testing.T) {
	t.Run("beside honest peers", func(t *testing.T) {
		v, all := sayNothing(t, hangs)
		in := v.honest("127.0.0.2")
		for _, c := range all {
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			require.NoError(t, err)
			require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
			c.Close()
		}
		attack.Bounded(t, "WebSockets that say nothing, honest handshakes that failed", 20-in, 0)
		attack.Bounded(t, "the same, goroutines", v.Most(), 200*3+100)
		v.Quiet()
	})
	t.Run("until they are cut off", func(t *testing.T) {
		v, all := sayNothing(t, 200*time.Millisecond)
		for _, c := range all {
			io.Copy(io.Discard, c) // until it is closed
		}
		attack.Bounded(t, "WebSockets that say nothing until they are cut off, goroutines", v.Most(), 200*3+100)
		v.Quiet()
	})
}

// sayNothing makes 200 WebSockets to a victim with the given time limit for handshakes.
func sayNothing(t *testing.T, limit time.Duration) (v *victim, all []net.Conn) {
	v, node := newVictim(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: limit}))
	s := httptest.NewServer(wswire.Handler(node))
	t.Cleanup(s.Close)
	v.scheme, v.address = "ws", strings.TrimPrefix(s.URL, "http://")
	for range 200 {
		c, err := v.dial("127.0.0.1")
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, "GET /rpc HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: asterisque.1\r\n\r\n")
		all = append(all, c)
	}
	v.Look()
	return v, all
}

// Requests need no authentication, and may be as long as the limit for headers.
func TestAttack_WrongRequestsLog(t *testing.T) {
	const requests = 1000
	long := strings.Repeat("x", 15<<10)
	for name, change := range map[string]func(r *http.Request){
		"the path":        func(r *http.Request) { r.URL.Path = "/" + long },
		"the subprotocol": func(r *http.Request) { r.Header.Set("Sec-WebSocket-Protocol", long) },
		"the origin": func(r *http.Request) {
			r.Header.Set("Sec-WebSocket-Protocol", wswire.Subprotocol)
			r.Header.Set("Origin", "https://"+long)
		},
		"the address": func(r *http.Request) { r.RemoteAddr = long }, // that middleware found
	} {
		var own, set strings.Builder
		logger := func(b *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
		silent := talkative{log: logger(&own)} // its logger is not that of a node
		for b, h := range map[*strings.Builder]http.Handler{&own: wswire.Handler(silent), &set: wswire.Handler(acceptor(nil), wswire.WithLogger(logger(&set)))} {
			begin := time.Now()
			for range requests {
				r := httptest.NewRequestWithContext(t.Context(), "GET", "/rpc", nil)
				for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
					r.Header.Set(k, v)
				}
				change(r)
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
			seconds := 1 + int(time.Since(begin)/time.Second)
			require.NotZero(t, b.Len(), name)
			attack.Bounded(t, "bytes of log for 1,000 requests with 15 KiB in "+name, b.Len(), 10*1024*seconds)
		}
	}
}

// crowdedDoor admits no connection.
type crowdedDoor struct{ acceptor }

func (crowdedDoor) Enter(net.Addr, func()) (transport.Place, error) {
	return nil, asterisque.ErrOverloaded
}

// talkative is an Acceptor with a logger.
type talkative struct {
	crowdedDoor
	log *slog.Logger
}

func (a talkative) Logger() *slog.Logger { return a.log }

// The logger is that of the Acceptor, unless WithLogger is given.
func TestHandler_Logger(t *testing.T) {
	var own, set strings.Builder
	logger := func(b *strings.Builder) *slog.Logger { return slog.New(slog.NewTextHandler(b, nil)) }
	a := talkative{log: logger(&own)}
	for _, opts := range [][]wswire.Option{nil, {wswire.WithLogger(logger(&set))}} {
		url := serveHTTP(t, wswire.Handler(a, opts...))
		resp, err := http.Get("http" + strings.TrimPrefix(url, "ws"))
		require.NoError(t, err)
		resp.Body.Close()
		_, err = wire.Dial(t.Context(), url, wire.Options{})
		require.ErrorContains(t, err, "503")
	}
	for _, b := range []*strings.Builder{&own, &set} {
		require.Equal(t, 1, strings.Count(b.String(), "not a WebSocket"))
		require.Equal(t, 1, strings.Count(b.String(), "WebSocket not accepted"))
	}
}
