package forward

import (
	"encoding/binary"
	"time"

	"github.com/asterisque-go/asterisque/internal/buffer"
	"github.com/asterisque-go/asterisque/wire"
)

const (
	// gathered is the limit, in bytes, for frames that are forwarded together.
	gathered = 32 << 10

	// head is the size of the length before each frame of a batch, in bytes.
	head = 4

	// slowest is the minimum rate of a reading side, in bytes per second.
	slowest = 16 << 10
)

// direction forwards frames in one direction. It belongs to one goroutine.
type direction struct {
	from    Side // fixed, as all up to patience
	to      wire.Wire
	ahead   wire.Buffered
	batches wire.BatchWriter // nil, as ahead, if frames are forwarded one by one

	patience time.Duration // how long a write may block
	late     *time.Timer   // ends the relay; runs during each write

	batch *buffer.Buffer // nil while no frame is gathered, so that an idle relay holds no memory
	n     int            // used bytes of batch
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

// carry forwards frames, and returns the error that ends it.
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

// pass writes a frame, or gathers it if the next one is available.
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

// flush writes the gathered frames.
func (d *direction) flush() error {
	d.begin(d.n)
	defer d.late.Stop()
	defer d.release()
	return d.batches.WriteBatch(d.batch.B[:d.n])
}

// begin sets the time limit for a write of n bytes.
func (d *direction) begin(n int) {
	d.late.Reset(d.patience + time.Duration(n)*time.Second/slowest)
}

func (d *direction) release() {
	if d.batch != nil {
		d.batch.Release()
	}
	d.batch, d.n = nil, 0
}
