package wire

import (
	"io"
	"net"
	"sync"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/internal/native"
	"github.com/asterisque-go/asterisque/wire/transport"
)

// Pipe returns the two ends of a Wire within this program. Each direction holds up to 64 KiB.
// Writing blocks while it is full, and a larger frame passes piece by piece while the other end
// reads. After Close of one end, the other end reads the frames written before, and then [io.EOF];
// its writes fail.
//
// All waits are on a [sync.Cond], so Pipe suits tests with [testing/synctest]. Each end is a
// [BatchWriter], a [TryWriter], [Buffered] and a [Meter].
func Pipe() (Wire, Wire) { return newPipe(transport.Addr("mem", "pipe")) }

func newPipe(a net.Addr) (Wire, Wire) {
	var there, back pipeBuffer
	there.changed.L, back.changed.L = &there.mu, &back.mu
	return newPipeWire(a, &there, &back), newPipeWire(a, &back, &there)
}

// pipeWire is one end of a Pipe.
type pipeWire struct {
	native.Mark
	*streamWire
	to *pipeBuffer
}

func newPipeWire(a net.Addr, to, from *pipeBuffer) *pipeWire {
	s := newStreamWire(pipeEnd{to, from})
	s.local, s.remote = a, a
	return &pipeWire{streamWire: s, to: to}
}

// TryWriteBatch implements TryWriter.
func (p *pipeWire) TryWriteBatch(batch []byte) (int, error) {
	if err := p.out.writable(); err != nil {
		return 0, err
	}
	n, err := p.to.write(batch, false)
	p.out.sent.Add(uint64(n))
	if err != nil {
		return n, p.out.failed(err)
	}
	return n, nil
}

// pipeEnd makes a stream of two channels.
type pipeEnd struct{ to, from *pipeBuffer }

func (e pipeEnd) Read(p []byte) (int, error)  { return e.from.read(p) }
func (e pipeEnd) Write(p []byte) (int, error) { return e.to.write(p, true) }

func (e pipeEnd) Close() error {
	e.to.end()
	e.from.abandon()
	return nil
}

// channelSize is how many bytes a channel holds.
const channelSize = 64 << 10

// pipeBuffer is one direction of a Pipe: a bounded queue of bytes.
type pipeBuffer struct {
	mu      sync.Mutex
	changed sync.Cond // uses mu; signals each change of the fields below

	mem       *buffer.Buffer // guarded by mu, like all below; a ring; nil while it is empty
	at        int            // position of the oldest byte in mem
	held      int            // how many bytes there are
	ended     bool           // the writing end was closed
	abandoned bool           // the reading end was closed: the content is discarded
}

// read waits for bytes and moves them to p.
func (c *pipeBuffer) read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.held == 0 && !c.ended && !c.abandoned {
		c.changed.Wait()
	}
	switch {
	case c.abandoned:
		return 0, io.ErrClosedPipe
	case c.held == 0:
		return 0, io.EOF
	}
	n := copy(p, c.mem.B[c.at:min(c.at+c.held, channelSize)])
	// nothing, unless the ring has been wrapped around and p has room
	n += copy(p[n:], c.mem.B[:c.held-n])
	c.at = (c.at + n) % channelSize
	c.held -= n
	if c.held == 0 {
		c.releaseLocked()
	}
	c.changed.Broadcast()
	return n, nil
}

// write moves p into the channel, blocking for room if wait is set, and returns how much of it was
// taken.
func (c *pipeBuffer) write(p []byte, wait bool) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := 0
	for {
		if c.ended || c.abandoned {
			return taken, io.ErrClosedPipe
		}
		taken += c.putLocked(p[taken:])
		if taken == len(p) || !wait {
			return taken, nil
		}
		c.changed.Wait()
	}
}

// putLocked moves as much of p into the ring as there is room for.
func (c *pipeBuffer) putLocked(p []byte) int {
	p = p[:min(len(p), channelSize-c.held)]
	if len(p) == 0 {
		return 0
	}
	if c.mem == nil {
		c.mem = buffer.Take(channelSize)
	}
	free := (c.at + c.held) % channelSize
	n := copy(c.mem.B[free:channelSize], p)
	copy(c.mem.B, p[n:])
	c.held += len(p)
	c.changed.Broadcast()
	return len(p)
}

// end closes the writing end.
func (c *pipeBuffer) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	c.changed.Broadcast()
}

// abandon closes the reading end.
func (c *pipeBuffer) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.abandoned = true
	c.releaseLocked()
	c.changed.Broadcast()
}

// releaseLocked empties the ring and releases its memory.
func (c *pipeBuffer) releaseLocked() {
	if c.mem != nil {
		c.mem.Release()
	}
	c.mem, c.at, c.held = nil, 0, 0
}
