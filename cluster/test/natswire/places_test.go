package natswire_test

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// openDoor admits each Wire, and counts.
type openDoor struct {
	mu            sync.Mutex
	entered, left int      // guarded by mu, as all below
	lost          []func() // of those that have entered
}

// Enter implements transport.Door.
func (d *openDoor) Enter(_ net.Addr, lost func()) (transport.Place, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entered++
	d.lost = append(d.lost, lost)
	return &openPlace{door: d}, nil
}

func (d *openDoor) counts() [2]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return [2]int{d.entered, d.left}
}

type openPlace struct {
	door *openDoor
	once sync.Once
}

// Enter implements transport.Place.
func (p *openPlace) Enter(lost func()) (transport.Place, error) { return p.door.Enter(nil, lost) }

// Leave implements transport.Place.
func (p *openPlace) Leave() {
	p.once.Do(func() {
		p.door.mu.Lock()
		defer p.door.mu.Unlock()
		p.door.left++
	})
}

// A Wire has a place until it is closed.
func TestPlace_UntilClose(t *testing.T) {
	s := broker(t)
	ln, err := wire.Listen(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	door := new(openDoor)
	ln.(transport.Guarded).Guard(door)
	ln.(transport.Guarded).Guard(closedDoor{}) // too late
	here, there := pairAt(t, ln, wire.Options{})
	require.NotNil(t, there.(transport.Admitted).Place())
	require.Nil(t, here.(transport.Admitted).Place())
	require.Equal(t, [2]int{1, 0}, door.counts())
	require.NoError(t, here.Close())
	require.Error(t, readError(there))
	require.Equal(t, [2]int{1, 0}, door.counts(), "a Wire that is over has it still")
	require.NoError(t, there.Close())
	require.NoError(t, there.Close())
	require.Equal(t, [2]int{1, 1}, door.counts())
}

// A Wire that loses its place is closed.
func TestPlace_Lost(t *testing.T) {
	s := broker(t)
	ln, err := wire.Listen(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	door := new(openDoor)
	ln.(transport.Guarded).Guard(door)
	here, there := pairAt(t, ln, wire.Options{})
	door.lost[0]()
	require.ErrorIs(t, readError(there), net.ErrClosed)
	require.Error(t, readError(here))
	require.Equal(t, [2]int{1, 1}, door.counts())
}

// A bad request needs no place.
func TestPlace_BadRequest(t *testing.T) {
	s := broker(t)
	ln, err := wire.Listen(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	door := new(openDoor)
	ln.(transport.Guarded).Guard(door)
	rawDial(t, connectTo(t, s), "name", []byte("hello"))
	require.Equal(t, [2]int{0, 0}, door.counts())
}

// No Wire is admitted before the first Accept.
func TestPlace_BeforeAccept(t *testing.T) {
	s := broker(t)
	ln, err := wire.Listen(t.Context(), s.ClientURL()+"/name", wire.Options{})
	require.NoError(t, err)
	defer ln.Close()
	dialled := make(chan error, 1)
	go func() { // ends with the dial
		w, err := wire.Dial(t.Context(), ln.URL(), wire.Options{})
		if err == nil {
			w.Close()
		}
		dialled <- err
	}()
	there, err := ln.Accept()
	require.NoError(t, err)
	defer there.Close()
	require.NoError(t, <-dialled)
}
