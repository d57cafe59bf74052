package wiretest

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/asterisque-go/asterisque/wire"
	"github.com/asterisque-go/asterisque/wire/transport"
)

func writeBatch(r *rig) {
	w := r.a.(wire.BatchWriter)
	var frames [][]byte
	for i := range 500 {
		frames = append(frames, frame(i, i))
	}
	frames = append(frames, frame(500, 1<<20), nil)
	large, single := batch(frames...), batch(frames[7])
	written := start("WriteBatch", func() error {
		return errors.Join(w.WriteBatch(large), w.WriteBatch(single), w.WriteBatch(nil), r.a.WriteFrames(frames[8:9]), w.WriteBatch(single))
	})
	r.must(written, expect(r.b, append(frames, frames[7], frames[8], frames[7])...))
}

func batchNotKept(r *rig) {
	r.notKept(func(frames [][]byte) error {
		data := batch(frames...)
		err := r.a.(wire.BatchWriter).WriteBatch(data)
		clear(data)
		return err
	})
}

func writeVector(r *rig) {
	w := r.a.(wire.VectorWriter)
	frames := [][]byte{frame(0, 10), frame(1, 100_000), nil, frame(2, 1)}
	written := start("WriteVector", func() error {
		return errors.Join(w.WriteVector(pieces(batch(frames...))), r.a.WriteFrames(frames[:1]), w.WriteVector(nil), w.WriteVector(pieces(batch(frames[3]))))
	})
	r.must(written, expect(r.b, append(frames, frames[0], frames[3])...))
}

func vectorNotKept(r *rig) {
	r.notKept(func(frames [][]byte) error {
		data := batch(frames...)
		err := r.a.(wire.VectorWriter).WriteVector(pieces(data))
		clear(data)
		return err
	})
}

func tryWriteBatch(r *rig) {
	w := r.a.(wire.TryWriter)
	var frames [][]byte
	taken, data := 0, []byte(nil)
	for taken == len(data) { // until the transport is full
		if len(frames)*floodFrame > floodLimit {
			r.fail("TryWriteBatch took %d unread MiB; memory would grow without bound", floodLimit>>20)
		}
		f := frame(len(frames), floodFrame)
		frames, data = append(frames, f), batch(f)
		r.ok(r.atOnce("TryWriteBatch, which may not wait,", func() (err error) {
			taken, err = w.TryWriteBatch(data)
			return err
		}), "TryWriteBatch")
		if taken < 0 || taken > len(data) {
			r.fail("TryWriteBatch said that it took %d of %d bytes", taken, len(data))
		}
	}
	read := expect(r.b, append(frames, frames[0])...)
	r.must(start("WriteBatch with what TryWriteBatch had left", func() error { return w.WriteBatch(data[taken:]) }))
	again := batch(frames[0])
	deadline := time.Now().Add(r.carry)
	for len(again) > 0 {
		r.ok(r.atOnce("TryWriteBatch while the peer reads", func() (err error) {
			taken, err = w.TryWriteBatch(again)
			return err
		}), "TryWriteBatch while the peer reads")
		if again = again[taken:]; taken == 0 && time.Now().After(deadline) {
			r.fail("TryWriteBatch took nothing for %v, though the peer reads", r.carry)
		}
	}
	r.must(read)
}

func buffered(r *rig) {
	ahead := r.b.(wire.Buffered)
	for i := range 100 {
		var more bool
		r.returns("Buffered", func() { more = ahead.Buffered() })
		if more {
			r.fail("Buffered is true though nothing was written that has not been read")
		}
		frames := [][]byte{frame(2*i, 200), frame(2*i+1, 200)}[:1+i%2]
		r.must(writeAll(r.a, frames), expect(r.b, frames...))
	}
}

// keep reads frames, and keeps the memory of those that it may.
func keep(r *rig) {
	ahead := r.b.(wire.Buffered)
	type kept struct {
		mem         *transport.Buffer
		frame, want []byte
	}
	var all []kept
	for i, size := range []int{10, 64<<10 + 20, 100, 1 << 20, 30 << 10, 0, 64<<10 + 20} {
		want := frame(i, size)
		writing := start("WriteFrames", func() error { return r.a.WriteFrames([][]byte{want}) })
		var got []byte
		var mem *transport.Buffer
		r.must(start("ReadFrame, and Keep behind it", func() (err error) {
			got, err = r.b.ReadFrame(most)
			mem = ahead.Keep()
			return err
		}), writing)
		if mem == nil {
			continue
		}
		if again := ahead.Keep(); again != nil {
			r.fail("Keep gave the memory of frame %d away twice", i)
		}
		if !mem.Fits(len(got)) {
			r.fail("Keep left %d bytes of memory for a frame of %d, which does not fill them: see Fits of transport.Buffer", len(mem.B), len(got))
		}
		all = append(all, kept{mem, got, want})
	}
	for i, k := range all {
		if !bytes.Equal(k.frame, k.want) {
			r.fail("the %dth frame that was kept has changed behind later frames", i+1)
		}
		k.mem.Release()
	}
}

// progress writes frames, and checks the counts of both ends.
func progress(r *rig) {
	const size = 300_000
	before, _ := r.b.(wire.Meter).Progress()
	_, written := r.a.(wire.Meter).Progress()
	want := frame(1, size)
	r.must(write(r.a, want), expect(r.b, want))
	after, _ := r.b.(wire.Meter).Progress()
	_, writtenAfter := r.a.(wire.Meter).Progress()
	if after-before < size || writtenAfter-written < size {
		r.fail("Progress counted %d bytes at the sender and %d at the receiver of a frame of %d", writtenAfter-written, after-before, size)
	}
}

// wholeInterfaces fails if an end has some methods of an optional interface, but not all of them.
func wholeInterfaces(r *rig) {
	for _, w := range []wire.Wire{r.a, r.b} {
		for _, t := range []reflect.Type{
			reflect.TypeFor[wire.VectorWriter](), reflect.TypeFor[wire.TryWriter](), reflect.TypeFor[wire.Buffered](), reflect.TypeFor[wire.Meter](),
		} {
			r.wholly(reflect.TypeOf(w), t)
		}
	}
}

// wholly fails the check if a type has some methods of want and not all.
func (r *rig) wholly(has, want reflect.Type) {
	r.Helper()
	batch, _ := reflect.TypeFor[wire.BatchWriter]().MethodByName("WriteBatch")
	var there, missing []string
	for i := range want.NumMethod() {
		if name := want.Method(i).Name; name == batch.Name {
			continue // it is a separate interface
		} else if _, ok := has.MethodByName(name); ok {
			there = append(there, name)
		} else {
			missing = append(missing, name)
		}
	}
	if len(there) > 0 && !has.Implements(want) {
		r.fail("%v has %v and is no %v, so that no session finds it: missing is %v, or a signature is another", has, there, want, missing)
	}
}

// receiving writes large frames until a concurrent Receiving has reported memory set aside for one.
func receiving(r *rig) {
	const size = 2 << 20
	const most = 2*size + 64<<10 // since it grows with the received bytes
	w, want := r.b.(wire.Meter), frame(1, size)
	for deadline := time.Now().Add(r.carry); ; {
		n, between := r.aside(w, want), 0
		r.returns("Receiving", func() { between = w.Receiving() })
		switch {
		case n > most:
			r.fail("Receiving was %d, while a frame of %d bytes arrived", n, size)
		case between != 0:
			r.fail("Receiving is %d between two frames, and nothing of the next one was written", between)
		case n > 0:
			return
		case time.Now().After(deadline):
			r.fail("Receiving was 0 all the time while frames of %d bytes arrived", size)
		}
	}
}

// aside sends a frame and returns the maximum of Receiving meanwhile.
func (r *rig) aside(w wire.Meter, frame []byte) (largest int) {
	r.Helper()
	var stop atomic.Bool
	asking := start("Receiving while a frame arrives", func() error {
		for ; !stop.Load(); runtime.Gosched() {
			largest = max(largest, w.Receiving())
		}
		return nil
	})
	defer stop.Store(true) // also if the check fails
	r.must(write(r.a, frame), expect(r.b, frame))
	stop.Store(true)
	r.awaitEnd(asking)
	return largest
}

// deadliner is a Wire with deadlines, as one over a net.Conn has.
type deadliner interface {
	SetReadDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

func readDeadline(r *rig) {
	d := r.b.(deadliner)
	read := func() error {
		_, err := r.b.ReadFrame(most)
		return err
	}
	waiting := start("ReadFrame that waited when its deadline passed", read)
	r.soon(waiting)
	r.deadline("SetReadDeadline during a ReadFrame", d.SetReadDeadline, time.Now())
	r.expired(waiting)
	r.expired(start("ReadFrame behind its deadline", read))
	r.deadline("SetReadDeadline with no deadline", d.SetReadDeadline, time.Time{})
	want := frame(1, 100)
	r.must(write(r.a, want), expect(r.b, want))
}

func writeDeadline(r *rig) {
	d := r.a.(deadliner)
	f := r.startFlood(r.a, byFrames, "WriteFrames that waited when its deadline passed")
	r.deadline("SetWriteDeadline during a WriteFrames", d.SetWriteDeadline, time.Now())
	r.expired(f.checkTask)
}

func (r *rig) deadline(what string, set func(time.Time) error, at time.Time) {
	r.Helper()
	r.ok(r.atOnce(what, func() error { return set(at) }), what)
}

// expired fails the check unless t ends with the error of a deadline.
func (r *rig) expired(t checkTask) {
	r.Helper()
	if err := r.awaitEnd(t); !errors.Is(err, os.ErrDeadlineExceeded) {
		r.fail("%s: the error is %v, which does not wrap os.ErrDeadlineExceeded", t.what, err)
	}
}
