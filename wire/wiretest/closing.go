package wiretest

import (
	"errors"
	"fmt"
	"io"

	"github.com/asterisque-go/asterisque/wire"
)

func backPressure(r *rig) {
	f := r.startFlood(r.a, byFrames, "WriteFrames")
	f.stop.Store(true)
	n, ended := 0, false
	read := func() error {
		got, err := r.b.ReadFrame(most)
		if ended = err == nil && len(got) == 0; ended {
			return nil
		}
		if err == nil {
			err = same(got, frame(n, floodFrame))
		}
		n++
		return err
	}
	for !ended {
		r.ok(r.do("ReadFrame", read), fmt.Sprintf("reading frame %d after the writer was stopped by the full transport", n))
	}
	r.must(f.checkTask)
	if written := int(f.frames.Load()); n != written {
		r.fail("%d frames were written and %d arrived", written, n)
	}
}

func closeEndsRead(r *rig) {
	read := start("ReadFrame that waited for the peer when Close was called", func() error {
		_, err := r.a.ReadFrame(most)
		return err
	})
	r.soon(read) // so that it waits
	r.close(r.a)
	r.closed(read)
}

// closeEndsWrite returns the check that Close ends the method of this name.
func closeEndsWrite(method string, write floodBy) func(r *rig) {
	return func(r *rig) {
		f := r.startFlood(r.a, write, method+" that waited for room when Close was called")
		r.close(r.a)
		r.closed(f.checkTask)
	}
}

// othersDoNotWait calls the methods that are allowed at any time while a ReadFrame and a
// WriteFrames of one end block.
func othersDoNotWait(r *rig) {
	const meanwhile = " while a ReadFrame and a WriteFrames wait"
	read := start("ReadFrame that waited, as WriteFrames did, when Close was called", func() error {
		_, err := r.a.ReadFrame(most)
		return err
	})
	f := r.startFlood(r.a, byFrames, "WriteFrames that waited, as ReadFrame did, when Close was called")
	r.returns("LocalAddr"+meanwhile, func() { r.a.LocalAddr() })
	r.returns("RemoteAddr"+meanwhile, func() { r.a.RemoteAddr() })
	if w, ok := r.a.(wire.Meter); ok {
		r.returns("Progress"+meanwhile, func() { w.Progress() })
		r.returns("Receiving"+meanwhile, func() { w.Receiving() })
	}
	r.close(r.a)
	r.closed(read)
	r.closed(f.checkTask)
}

func closeTwice(r *rig) {
	var closing []checkTask
	for range 8 {
		closing = append(closing, start("one of several Close at the same time", r.a.Close))
	}
	for _, t := range closing {
		r.ok(r.awaitEnd(t), t.what)
	}
	for range 2 {
		r.ok(r.atOnce("repeated Close", r.a.Close), "repeated Close")
	}
}

func afterClose(r *rig) {
	two := [][]byte{frame(1, 10), frame(2, 10)}
	written := writeAll(r.b, two)
	r.must(expect(r.a, two[0])) // so the second may be in memory already
	r.close(r.a)
	r.closed(start("ReadFrame after Close", func() error { _, err := r.a.ReadFrame(most); return err }))
	r.closed(start("WriteFrames after Close", func() error { return r.a.WriteFrames(two) }))
	if w, ok := r.a.(wire.BatchWriter); ok {
		r.closed(start("WriteBatch after Close", func() error { return w.WriteBatch(batch(two...)) }))
	}
	if w, ok := r.a.(wire.VectorWriter); ok {
		r.closed(start("WriteVector after Close", func() error { return w.WriteVector(pieces(batch(two...))) }))
	}
	if w, ok := r.a.(wire.TryWriter); ok {
		r.closed(start("TryWriteBatch after Close", func() error { _, err := w.TryWriteBatch(batch(two...)); return err }))
	}
	r.awaitEnd(written) // with or without an error
}

func peerClose(r *rig) {
	var frames [][]byte
	for i := range 100 {
		frames = append(frames, frame(i, 100))
	}
	written := start("WriteFrames and Close", func() error {
		if err := r.a.WriteFrames(frames); err != nil {
			return err
		}
		return r.a.Close()
	})
	r.soon(written) // so that unread frames exist when the other end is closed
	r.must(written, expect(r.b, frames...))
	for range 2 {
		err := r.do("ReadFrame after the peer's Close", func() error {
			_, err := r.b.ReadFrame(most)
			return err
		})
		if !errors.Is(err, io.EOF) {
			r.fail("ReadFrame after the peer's Close returned the error %v, not io.EOF", err)
		}
	}
}

func peerCloseEndsWrite(r *rig) {
	f := r.startFlood(r.a, byFrames, "WriteFrames that waited for room when the peer called Close")
	r.close(r.b)
	if err := r.awaitEnd(f.checkTask); err == nil {
		r.fail("%s succeeded", f.what)
	}
}
