package tunnel

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/stream"
)

// large is the size, in bytes, of a Write from which its end may be kept for a moment: below it,
// waiting costs more than a separate send.
const large = 32 << 10

// buffer is memory for a Block.
type buffer [stream.DefaultSize]byte

// buffers holds unused buffers.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

// sendSide is the direction in which a Conn sends.
//
// Every Block costs about the same, at any size up to some 63 KiB. Writes of 64 KiB, each split
// into a Block of 63 and one of 1 KiB, would be a third slower than full Blocks. So the end of a
// large Write is kept, if the window has room for it already, and is sent with the beginning of the
// next one. If that does not follow at once, a goroutine sends it.
type sendSide struct {
	pipe     *pipe.Pipe   // these are fixed
	most     int          // bytes in a Block
	deadline connDeadline // locks itself

	turn turn    // of the writers
	kept int     // bytes in mem; belongs to the holder of turn, as all below
	mem  *buffer // nil if nothing is kept
	err  error   // the error of sending kept bytes

	soon atomic.Bool // a goroutine is about to send the kept bytes

	ending sync.Once
	over   chan struct{} // closed when nothing more will be sent
}

func (o *sendSide) init(p *pipe.Pipe) {
	o.pipe, o.most = p, max(1, min(stream.DefaultSize, p.MaxBlock()))
	o.deadline.bound = newBound()
	o.turn, o.over = newTurn(), make(chan struct{})
}

// write sends b, and returns how much of it was accepted.
func (o *sendSide) write(b []byte) (n int, err error) {
	bound := o.deadline.current()
	if err := o.turn.take(bound); err != nil {
		return 0, err
	}
	defer o.pass()
	for all := len(b); n < all; {
		k, err := o.put(bound, b[n:], all >= large)
		if n += k; err != nil {
			return n, err
		}
	}
	return n, nil
}

// pass releases the turn. If bytes are kept, and no other Write sends them at once, a goroutine
// sends them; it ends after that, or with the session.
func (o *sendSide) pass() {
	left := o.kept > 0
	o.turn.pass()
	if left && o.soon.CompareAndSwap(false, true) {
		go o.sendKept()
	}
}

// sendKept sends the kept bytes. If another goroutine has the turn, it sends them, or calls pass.
func (o *sendSide) sendKept() {
	o.soon.Store(false)
	if o.turn.try() {
		o.flush()
		o.turn.pass()
	}
}

// put sends the next Block of b, or keeps it as the end of a large Write. It returns how much of b
// it has accepted.
func (o *sendSide) put(bound *deadlineContext, b []byte, keep bool) (n int, err error) {
	switch cause := bound.cause(); {
	case cause != nil:
		return 0, cause
	case o.err != nil:
		return 0, o.err
	case keep && o.kept+len(b) < o.most && o.kept+len(b) <= o.fits():
		o.keep(b)
		return len(b), nil
	case o.kept > 0:
		n, err = o.sendJoined(bound, b)
	default:
		n, err = o.sendNext(bound, b)
	}
	if cause := bound.cause(); err != nil && cause != nil {
		err = cause
	}
	return n, err
}

// fits returns how many bytes the window has room for now.
func (o *sendSide) fits() int {
	n, err := o.pipe.AwaitCredit(ended)
	if err != nil {
		return 0
	}
	return n
}

// sendNext sends as much of b as fits into one Block and the window.
func (o *sendSide) sendNext(bound *deadlineContext, b []byte) (n int, err error) {
	n, err = o.pipe.AwaitCredit(bound)
	if err != nil {
		return 0, err
	}
	if n = min(n, len(b), o.most); n == 0 {
		n = min(len(b), o.most) // the peer gives no credit without an Ask
	}
	if err := o.pipe.Send(bound, b[:n]); err != nil {
		return 0, err
	}
	return n, nil
}

// sendJoined sends the kept bytes, for which the window has room, together with as much of b as
// fits.
func (o *sendSide) sendJoined(bound *deadlineContext, b []byte) (n int, err error) {
	n = copy(o.mem[o.kept:o.most], b[:min(len(b), max(o.fits()-o.kept, 0))])
	if err := o.pipe.Send(bound, o.mem[:o.kept+n]); err != nil {
		return 0, err
	}
	o.forget()
	return n, nil
}

// keep keeps b.
func (o *sendSide) keep(b []byte) {
	if o.mem == nil {
		o.mem = buffers.Get().(*buffer)
	}
	o.kept += copy(o.mem[o.kept:], b)
}

// forget is called when the kept bytes are not needed any more.
func (o *sendSide) forget() {
	buffers.Put(o.mem)
	o.mem, o.kept = nil, 0
}

// flush sends the kept bytes. It blocks for the limits of the session.
func (o *sendSide) flush() {
	if o.kept == 0 {
		return
	}
	o.err = o.pipe.Send(context.Background(), o.mem[:o.kept])
	o.forget()
}

// end ends the direction; cause is the error of later writes. It does not block: if the end cannot
// be sent at once, a goroutine sends the kept bytes first; it ends after that, or with the session.
func (o *sendSide) end(cause error) {
	o.deadline.end(cause)
	o.ending.Do(func() {
		switch {
		case !o.turn.try(): // the holder is awake, or sends kept bytes
			go func() { o.turn.await(); o.finish() }()
		case o.kept > 0:
			go o.finish()
		default:
			o.finish()
		}
	})
}

// finish is called with the turn, which is never released.
func (o *sendSide) finish() {
	o.flush()
	o.pipe.CloseSend() // an error means that the call is over
	close(o.over)
}
