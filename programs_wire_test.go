package asterisque_test

import (
	"context"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// cable is the kind and the properties of a program's wires.
type cable struct {
	kind cableKind
	// of a hose: bytes in flight in each direction; 0: a write waits for its read
	room  int
	piece int           // bytes that a read returns at once
	pause time.Duration // after each piece, unless room is smaller than a piece

	delay wiretest.Direction // of a slow cable

	lostAfter []int // bytes after which one hose after the other is lost
}

type cableKind uint8

const (
	hoses cableKind = iota
	inMemoryPipes
	slowPipes
)

func (k cableKind) String() string { return [...]string{"hoses", "pipes", "slow pipes"}[k] }

// progDialer connects the two nodes of a program.
type progDialer struct {
	cable cable // these are fixed
	to    *asterisque.Node

	mu   sync.Mutex
	lose func()        // guarded by mu, as all below; loses the present wire
	made int           // number of wires so far
	held chan struct{} // dialling waits until it is closed; may be nil
}

func (d *progDialer) dial(ctx context.Context) (wire.Wire, error) {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a, b, lose := d.cable.wires(d.made)
	d.made++
	d.lose = lose
	go d.to.Accept(testkit.Background, b) // ends with the handshake
	return a, nil
}

// cut loses the present wire.
func (d *progDialer) cut() {
	d.mu.Lock()
	lose := d.lose
	d.mu.Unlock()
	lose()
}

// away loses the present wire, and blocks dialling for length.
func (d *progDialer) away(length time.Duration) {
	held := make(chan struct{})
	d.mu.Lock()
	d.held = held
	d.mu.Unlock()
	d.cut()
	fakeclock.Sleep(length)
	d.mu.Lock()
	d.held = nil
	d.mu.Unlock()
	close(held)
}

// wires returns two connected wires, the nth ones, and a function that loses them.
func (c *cable) wires(n int) (a, b wire.Wire, lose func()) {
	if c.kind == hoses {
		there, back := newHose(c), newHose(c)
		if n < len(c.lostAfter) {
			there.left = c.lostAfter[n]
		}
		lose = func() { there.lose(); back.lose() }
		there.lost, back.lost = lose, lose
		return wire.FromConn(hoseEnd{there, back}), wire.FromConn(hoseEnd{back, there}), lose
	}
	a, b = wire.Pipe()
	if c.kind == inMemoryPipes {
		return a, b, func() { a.Close(); b.Close() }
	}
	f := wiretest.Faulty(a, wiretest.Faults{Out: c.delay, In: c.delay})
	return f, b, f.Cut
}

// hose is one direction of a connection.
type hose struct {
	room, piece int // these are fixed
	pause       time.Duration
	lost        func() // loses both directions

	mu      sync.Mutex
	changed sync.Cond // uses mu; broadcast at every change of the fields below

	bytes   []byte
	reading bool  // a reader waits for bytes
	left    int   // bytes until the connection is lost; below 0: never
	err     error // of writers
	end     error // of readers, after the remaining bytes
}

func newHose(c *cable) *hose {
	h := &hose{room: c.room, piece: c.piece, pause: c.pause, left: -1}
	h.changed.L = &h.mu
	return h
}

func (h *hose) read(p []byte) (int, error) {
	h.mu.Lock()
	h.reading = true
	h.changed.Broadcast()
	for len(h.bytes) == 0 && h.end == nil {
		h.changed.Wait()
	}
	h.reading = false
	if len(h.bytes) == 0 {
		defer h.mu.Unlock()
		return 0, h.end
	}
	n := copy(p[:min(len(p), h.piece)], h.bytes)
	h.bytes = h.bytes[n:]
	h.changed.Broadcast()
	h.mu.Unlock()
	if h.room >= h.piece {
		fakeclock.Sleep(h.pause * time.Duration(n) / time.Duration(h.piece))
	}
	return n, nil
}

func (h *hose) write(p []byte) (n int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n < len(p) && h.err == nil {
		room := h.room - len(h.bytes)
		if h.room == 0 && h.reading && len(h.bytes) == 0 {
			room = h.piece
		}
		if room <= 0 {
			h.changed.Wait()
			continue
		}
		k := min(len(p)-n, room)
		if h.left >= 0 {
			k = min(k, h.left)
			h.left -= k
		}
		h.bytes = append(h.bytes, p[n:n+k]...)
		n += k
		h.changed.Broadcast()
		if h.left == 0 {
			h.mu.Unlock()
			h.lost()
			h.mu.Lock()
		}
	}
	for h.room == 0 && h.err == nil && len(h.bytes) > 0 {
		h.changed.Wait()
	}
	if n < len(p) || h.err != nil && h.room == 0 && len(h.bytes) > 0 {
		return n, h.err
	}
	return n, nil
}

// lose ends the hose, with all bytes in it.
func (h *hose) lose() { h.over(syscall.ECONNRESET, syscall.ECONNRESET, true) }

// over ends the hose with these errors, unless it has ended.
func (h *hose) over(write, read error, empty bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = write
	}
	if h.end == nil {
		h.end = read
	}
	if empty {
		h.bytes = nil
	}
	h.changed.Broadcast()
}

// hoseEnd is one end of a connection.
type hoseEnd struct{ out, in *hose }

func (e hoseEnd) Read(p []byte) (int, error)  { return e.in.read(p) }
func (e hoseEnd) Write(p []byte) (int, error) { return e.out.write(p) }

func (e hoseEnd) Close() error {
	e.out.over(io.ErrClosedPipe, io.EOF, false)
	e.in.over(syscall.EPIPE, io.ErrClosedPipe, true)
	return nil
}
