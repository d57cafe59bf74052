//go:build !js

package wswire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/attack"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
	"github.com/asterisque-go/asterisque/wire/wswire"
)

// countingDoor admits each connection, but each third one only briefly, and counts.
type countingDoor struct {
	mu            sync.Mutex
	entered, left int // guarded by mu
}

func (d *countingDoor) Enter(_ net.Addr, lost func()) (transport.Place, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entered++
	switch d.entered % 5 {
	case 0:
		time.AfterFunc(time.Millisecond, lost)
	case 1:
		go lost()
	case 2:
		d.left++
		return nil, errors.New("full")
	}
	return &countedPlace{door: d}, nil
}

func (d *countingDoor) requireEmpty(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.entered > 0 && d.entered == d.left
	}, hangs, time.Millisecond)
}

// Accept is the Accept of an Acceptor that misbehaves at times.
func (d *countingDoor) Accept(_ context.Context, w wire.Wire) (any, error) {
	d.mu.Lock()
	n := d.entered
	d.mu.Unlock()
	if n%7 == 0 {
		panic("accepting")
	}
	w.Close()
	return nil, nil
}

type countedPlace struct {
	door *countingDoor
	once sync.Once
}

func (p *countedPlace) Enter(func()) (transport.Place, error) { return nil, errors.New("none here") }

func (p *countedPlace) Leave() {
	p.once.Do(func() {
		p.door.mu.Lock()
		p.door.left++
		p.door.mu.Unlock()
	})
}

// upgrade is a request for an upgrade to a WebSocket.
var upgrade = strings.Join([]string{"GET /rpc HTTP/1.1", "Host: x", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: " + wswire.Subprotocol, "", ""}, "\r\n")

// soup are first bytes that a peer may send.
var soup = []string{
	"", "GET", "\x16\x03\x01\x02\x00", "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n", "GET /rpc HTTP/1.1\r\nHost: x\r\n\r\n", upgrade[:100], upgrade, upgrade + "\x89\x80\x00\x00\x00\x00",
	strings.Replace(upgrade, "Version: 13", "Version: 12", 1), strings.Replace(upgrade, "Key: dGhl", "Key: !", 1), strings.Replace(upgrade, "Host: x", "Host: x\r\nOrigin: http://y", 1),
	strings.Replace(upgrade, "Host: x", "Host: x\r\nExpect: 100-continue\r\nContent-Length: 9", 1), strings.Replace(upgrade, "Connection: Upgrade", "Connection: close", 1),
}

// pour sends each element of soup on a connection of its own, and closes at once or after the first
// byte of the answer.
func pour(address string) {
	var all sync.WaitGroup
	for i := range 4 * len(soup) {
		all.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				return
			}
			defer c.Close()
			io.WriteString(c, soup[i%len(soup)])
			c.SetReadDeadline(time.Now().Add(time.Duration(i%3) * 10 * time.Millisecond))
			c.Read(make([]byte, 100))
		})
	}
	all.Wait()
}

func TestAttack_ListenerPlaces(t *testing.T) {
	server, _ := tlsOptions(t)
	for _, scheme := range []string{"ws", "wss"} {
		door := new(countingDoor)
		l, err := wire.Listen(t.Context(), scheme+"://127.0.0.1:0/rpc", server)
		require.NoError(t, err)
		l.(transport.Guarded).Guard(door)
		address := strings.TrimSuffix(strings.TrimPrefix(l.URL(), scheme+"://"), "/rpc")
		go func() { // ends with l; it leaves some that wait
			for range 5 {
				if w, err := l.Accept(); err == nil {
					w.Close()
				}
			}
		}()
		pour(address)
		var closing sync.WaitGroup
		closing.Go(func() { pour(address) })
		l.Close()
		closing.Wait()
		door.requireEmpty(t)
	}
}

func TestAttack_HandlerPlaces(t *testing.T) {
	door := new(countingDoor)
	quiet := slog.New(slog.DiscardHandler)
	s := httptest.NewUnstartedServer(http.NewServeMux())
	s.Config.Handler.(*http.ServeMux).Handle("/rpc", wswire.Handler(door, wswire.WithLogger(quiet)))
	s.Config.ErrorLog = slog.NewLogLogger(quiet.Handler(), slog.LevelWarn)
	s.Start()
	for range 3 {
		pour(s.Listener.Addr().String())
	}
	s.CloseClientConnections()
	s.Close()
	door.requireEmpty(t)
}

// The HTTP server logs a different text for each connection, and the bound is per text.
func TestAttack_TLSFailuresLog(t *testing.T) {
	var mu sync.Mutex
	var log bytes.Buffer
	server, _ := tlsOptions(t)
	node := asterisque.NewNode(asterisque.WithLogger(slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))))
	defer node.Close()
	l, err := wire.Listen(t.Context(), "wss://127.0.0.1:0/rpc", server)
	require.NoError(t, err)
	go node.Serve(context.Background(), l) // ends with node
	begin := time.Now()
	for range 400 {
		c, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(l.URL(), "wss://"), "/rpc"))
		require.NoError(t, err)
		fmt.Fprint(c, "no TLS at all\r\n\r\n")
		io.Copy(io.Discard, c) // until the server has seen it
		c.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	require.Contains(t, log.String(), "TLS handshake error")
	seconds := 1 + int(time.Since(begin)/time.Second)
	attack.Bounded(t, "lines of log for 400 TLS handshakes that fail", strings.Count(log.String(), "\n"), 10*seconds)
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
