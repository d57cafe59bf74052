package quicwire

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testtls"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// countingDoor admits most connections, some only briefly, and counts their places and the places
// on them.
type countingDoor struct {
	mu            sync.Mutex
	entered, left int // guarded by mu
}

// Enter implements transport.Door.
func (d *countingDoor) Enter(_ net.Addr, lost func()) (transport.Place, error) { return d.enter(lost) }

func (d *countingDoor) enter(lost func()) (transport.Place, error) {
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
	default:
		time.AfterFunc(200*time.Millisecond, lost)
	}
	return &countedPlace{door: d}, nil
}

type countedPlace struct {
	door *countingDoor
	once sync.Once
}

// Enter implements transport.Place.
func (p *countedPlace) Enter(lost func()) (transport.Place, error) { return p.door.enter(lost) }

// Leave implements transport.Place.
func (p *countedPlace) Leave() {
	p.once.Do(func() {
		p.door.mu.Lock()
		p.door.left++
		p.door.mu.Unlock()
	})
}

// pour makes connections that fail, stall, open streams without data, or end in the middle.
func pour(address string, client *tls.Config) {
	stranger := &tls.Config{ServerName: "127.0.0.1", MinVersion: tls.VersionTLS13}
	other := client.Clone()
	other.NextProtos = []string{"h3"}
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i%4)*100*time.Millisecond)
			defer cancel()
			c, err := Dial(ctx, address, []*tls.Config{client, client, stranger, other}[i%4])
			if err != nil {
				return
			}
			for range i % 6 {
				if w, err := c.Open(); err == nil {
					w.WriteFrames([][]byte{{1}})
				}
			}
			if i%3 == 0 {
				<-ctx.Done()
			}
			c.Close()
		})
	}
	all.Wait()
}

// All places of a listener are released.
func TestAttack_ListenerPlaces(t *testing.T) {
	server, client := testtls.Configs(t)
	door := new(countingDoor)
	l, err := wire.Listen(t.Context(), "quic://127.0.0.1:0", wire.Options{TLS: server})
	require.NoError(t, err)
	l.(transport.Guarded).Guard(door)
	go func() { // ends with l
		for {
			w, err := l.Accept()
			if err != nil {
				return
			}
			w.Close()
		}
	}()
	pour(address(l), client)
	var closing sync.WaitGroup
	closing.Go(func() { pour(address(l), client) })
	l.Close()
	closing.Wait()
	door.requireEmpty(t)
	h := &l.(*listener).handshakes
	h.mu.Lock()
	defer h.mu.Unlock()
	require.Zero(t, h.open)
	require.Zero(t, h.unread)
	require.Empty(t, h.unreadOf)
}

func (d *countingDoor) requireEmpty(t *testing.T) {
	t.Helper()
	counts := func() (entered, left int) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.entered, d.left
	}
	require.Eventually(t, func() bool { entered, left := counts(); return entered > 0 && entered == left }, hangs, time.Millisecond)
}
