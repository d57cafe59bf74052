package wswire_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

// bounded requires that what was measured in an attack is within its bound. With -run Attack it
// also prints a line: these are the measured column of SECURITY.md.
func bounded(t testing.TB, what string, measured, bound int) {
	t.Helper()
	if strings.Contains(flag.Lookup("test.run").Value.String(), "Attack") {
		fmt.Printf("%-72s %12d of %12d\n", what, measured, bound)
	}
	require.LessOrEqual(t, measured, bound, what)
}

// took prints how long the honest ones needed, if the attacks are printed.
func took(begin time.Time) {
	if strings.Contains(flag.Lookup("test.run").Value.String(), "Attack") {
		fmt.Printf("%-72s %12v\n", "the honest handshakes beside, and a call in each, took", time.Since(begin).Round(time.Millisecond))
	}
}

// victim is a server with a node.
type victim struct {
	t       *testing.T
	scheme  string
	address string
	client  *tls.Config // nil without TLS
	before  int         // goroutines

	most atomic.Int64 // goroutines that were there at once, beyond before
}

// newVictim returns a victim without a server, and its node.
func newVictim(t *testing.T, opts ...asterisque.Option) (*victim, *asterisque.Node) {
	svc := asterisque.NewService()
	echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil })
	require.Eventually(t, func() bool { return runtime.NumGoroutine() < 10 }, 10*time.Second, time.Millisecond)
	v := &victim{t: t, before: runtime.NumGoroutine()}
	node := asterisque.NewNode(append(opts, asterisque.WithService(svc))...)
	t.Cleanup(func() { node.Close() })
	return v, node
}

// serveVictim returns a victim whose node serves a listener.
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
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return d.Dial("tcp", v.address)
}

// look notes how many goroutines there are. runtime.NumGoroutine is far too high now and then while
// they come and go, and so it counts while they stand still.
func (v *victim) look() int {
	n, _ := runtime.GoroutineProfile(make([]runtime.StackRecord, 1))
	n -= v.before
	for most := v.most.Load(); int64(n) > most && !v.most.CompareAndSwap(most, int64(n)); most = v.most.Load() {
	}
	return n
}

// farAway listens for connections, and carries each to v from another address, after 50 ms.
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
	for range 10 {
		time.Sleep(5 * time.Millisecond) // a long path: nothing waits for it
		v.look()
	}
	go func() { // ends with there
		defer c.Close()
		io.Copy(c, there)
	}()
	defer there.Close()
	io.Copy(there, c)
}

// honest makes 20 sessions, four at a time, on connections whose packets take 50 ms, and returns
// how many could call.
func (v *victim) honest(from string) int {
	defer took(time.Now())
	node := asterisque.NewNode(asterisque.WithTLS(v.client))
	defer node.Close()
	url := v.scheme + "://" + v.farAway(from) + "/rpc"
	var in atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 5 {
				s, err := node.Dial(context.Background(), url)
				if err == nil {
					_, err = echo.Call(context.Background(), s, "honest")
					s.Close()
				}
				if err != nil {
					v.t.Log(err)
					continue
				}
				in.Add(1)
			}
		})
	}
	all.Wait()
	return int(in.Load())
}

// quiet waits until there are hardly more goroutines than before, and says so.
func (v *victim) quiet() {
	v.t.Helper()
	require.Eventually(v.t, func() bool { return v.look() < 20 }, 10*time.Second, time.Millisecond)
	bounded(v.t, "the same, goroutines after the deadline", v.look(), 20)
}

func TestAttackPipelinedRequestsWhoseAnswersNobodyReads(t *testing.T) {
	for name, request := range map[string]string{
		"elsewhere":     "GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n",
		"no WebSocket":  "GET /rpc HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
		"without a key": "GET /rpc HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Protocol: asterisque.1\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) { pipeline(t, []byte(strings.Repeat(request, 1000))) })
	}
}

// pipeline sends requests on 100 connections until they are cut off.
func pipeline(t *testing.T, requests []byte) {
	v := serveVictim(t, "ws", asterisque.WithTimeouts(asterisque.Timeouts{Handshake: time.Second}))
	var attackers sync.WaitGroup
	for range 100 {
		c, err := v.dial("127.0.0.1")
		require.NoError(t, err)
		defer c.Close()
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		attackers.Go(func() {
			for err == nil {
				_, err = c.Write(requests)
			}
		})
	}
	in := v.honest("127.0.0.2")
	attackers.Wait()
	bounded(t, "pipelined requests to a WebSocket, honest handshakes that failed", 20-in, 0)
	bounded(t, "the same, goroutines", int(v.most.Load()), 100*3+100)
	v.quiet()
}

func TestAttackMoreSessionsThanAnAddressMayHaveThroughAHandler(t *testing.T) {
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
	v.look()
	bounded(t, "WebSocket sessions of an address with Admission.PerAddress of 2", int(in.Load()), 2)
	require.EqualValues(t, 50, in.Load()+told.Load(), "the others are told by HTTP")
	require.Positive(t, in.Load())
}

func TestAttackSilentDialsToAWebSocket(t *testing.T) {
	for scheme, half := range map[string]string{"ws": "GET /rpc HTTP/1.1\r\nHost: ", "wss": "\x16\x03\x01"} {
		t.Run(scheme, func(t *testing.T) { dialSilently(t, scheme, half) })
	}
}

// dialSilently makes connections that stop in the middle of the first word.
func dialSilently(t *testing.T, scheme, half string) {
	v := serveVictim(t, scheme)
	ctx, stop := context.WithCancel(t.Context())
	var silent sync.WaitGroup
	var dials atomic.Int64
	for range 4 {
		silent.Go(func() {
			var all []net.Conn
			tick := time.NewTicker(3 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				<-tick.C
				if c, err := v.dial("127.0.0.1"); err == nil {
					io.WriteString(c, half)
					all = append(all, c)
					dials.Add(1)
				}
			}
			for _, c := range all {
				c.Close()
			}
		})
	}
	in := v.honest("127.0.0.1")
	stop()
	silent.Wait()
	bounded(t, "silent dials to "+scheme+", honest handshakes that failed", 20-in, 0)
	bounded(t, "the same, goroutines", int(v.most.Load()), 1024+200)
	require.Greater(t, dials.Load(), int64(20))
	v.quiet()
}

func TestAttackWebSocketsThatSayNothing(t *testing.T) {
	v, node := newVictim(t, asterisque.WithTimeouts(asterisque.Timeouts{Handshake: 500 * time.Millisecond}))
	s := httptest.NewServer(wswire.Handler(node))
	defer s.Close()
	v.scheme, v.address = "ws", strings.TrimPrefix(s.URL, "http://")
	var all []net.Conn
	for range 200 {
		c, err := v.dial("127.0.0.1")
		require.NoError(t, err)
		defer c.Close()
		io.WriteString(c, "GET /rpc HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: asterisque.1\r\n\r\n")
		all = append(all, c)
	}
	in := v.honest("127.0.0.2")
	for _, c := range all {
		r := bufio.NewReader(c)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusSwitchingProtocols, resp.StatusCode)
		io.Copy(io.Discard, r) // until it is closed
	}
	bounded(t, "WebSockets that say nothing, honest handshakes that failed", 20-in, 0)
	bounded(t, "the same, goroutines", int(v.most.Load()), 200*3+100)
	v.quiet()
}

// crowdedDoor lets nobody in.
type crowdedDoor struct{ acceptor }

func (crowdedDoor) Enter(net.Addr, func()) (wire.Place, error) { return nil, asterisque.ErrOverloaded }

// talkative is an Acceptor with a logger.
type talkative struct {
	crowdedDoor
	log *slog.Logger
}

func (a talkative) Logger() *slog.Logger { return a.log }

func TestWhoseLoggerItIs(t *testing.T) {
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
