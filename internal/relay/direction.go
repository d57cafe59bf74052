package relay

import (
	"encoding/binary"
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/wire"
)

const (
	// gathered is how many bytes of frames that have come together go on together.
	gathered = 32 << 10

	// head is what a frame of a batch has before it, in bytes.
	head = 4

	// slowest is how many bytes a second a side that reads has to take at least.
	slowest = 16 << 10
)

// direction carries frames one way. It belongs to one goroutine.
type direction struct {
	from    Side // these are fixed
	to      wire.Wire
	ahead   wire.Buffered
	batches wire.BatchWriter // nil, as ahead: each frame goes on by itself

	patience time.Duration // for how long a write may stand
	late     *time.Timer   // ends the relay; runs while something is written

	batch *buffer.Buffer // nil while nothing is gathered, so that a silent relay holds nothing
	n     int            // bytes of it that are
	one   [1][]byte
}

func newDirection(from Side, to wire.Wire) *direction {
	d := &direction{from: from, to: to}
	ahead, reads := from.Wire.(wire.Buffered)
	batches, writes := to.(wire.BatchWriter)
	if reads && writes {
		d.ahead, d.batches = ahead, batches
	}
	return d
}

// carry returns the error that ends it.
func (d *direction) carry() error {
	defer d.release()
	for {
		frame, err := d.from.ReadFrame(d.from.Largest)
		if err == nil {
			err = d.pass(frame)
		}
		if err != nil {
			return err
		}
	}
}

// pass writes a frame, or gathers it while the next one is there.
func (d *direction) pass(frame []byte) error {
	more := d.batches != nil && d.ahead.Buffered()
	if d.batch == nil && (!more || head+len(frame) > gathered) {
		return d.write(frame)
	}
	if d.n+head+len(frame) > gathered {
		if err := d.flush(); err != nil {
			return err
		}
		return d.pass(frame)
	}
	if d.batch == nil {
		d.batch = buffer.Take(gathered)
	}
	binary.BigEndian.PutUint32(d.batch.B[d.n:], uint32(len(frame)))
	d.n += head + copy(d.batch.B[d.n+head:], frame)
	if more {
		return nil
	}
	return d.flush()
}

// write writes one frame.
func (d *direction) write(frame []byte) error {
	d.begin(len(frame))
	defer d.late.Stop()
	d.one[0] = frame
	return d.to.WriteFrames(d.one[:])
}

// flush writes what is gathered.
func (d *direction) flush() error {
	d.begin(d.n)
	defer d.late.Stop()
	defer d.release()
	return d.batches.WriteBatch(d.batch.B[:d.n])
}

// begin bounds the time in which n bytes are written.
func (d *direction) begin(n int) {
	d.late.Reset(d.patience + time.Duration(n)*time.Second/slowest)
}

func (d *direction) release() {
	if d.batch != nil {
		d.batch.Release()
	}
	d.batch, d.n = nil, 0
}
