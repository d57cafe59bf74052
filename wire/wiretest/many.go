package wiretest

import (
	"encoding/binary"
	"fmt"

	"github.com/asterisque-go/asterisque/wire"
)

const (
	// many is the number of numbered frames in each direction. A Wire that loses each 20,000th
	// frame loses one of these wherever its count starts, and more frames follow that one.
	many = 21_000

	// strays is the number of frames among which a late frame is searched.
	strays = 1000
)

// manyBy returns the check that many frames arrive in order, for a method that groups them into
// calls.
func manyBy(write func(w wire.Wire, frames [][]byte) error) func(r *rig) {
	return func(r *rig) {
		r.must(writeMany(r.a, 'a', write), writeMany(r.b, 'b', write), expectMany(r.a, 'b'), expectMany(r.b, 'a'))
	}
}

func writeMany(w wire.Wire, from byte, write func(w wire.Wire, frames [][]byte) error) checkTask {
	return start("writing many numbered frames", func() error {
		for n := 1; n <= many; {
			var frames [][]byte
			for end := min(n+n%97, many); n <= end; n++ {
				frames = append(frames, numbered(from, n))
			}
			if err := write(w, frames); err != nil {
				return err
			}
		}
		return nil
	})
}

// numbered returns a frame that contains its number. Its size depends on that.
func numbered(from byte, n int) []byte {
	f := frame(n, 9+n%50)
	f[0] = from
	binary.BigEndian.PutUint64(f[1:], uint64(n))
	return f
}

func expectMany(w wire.Wire, from byte) checkTask {
	return start("ReadFrame of many numbered frames", func() error {
		for n := 1; n <= many; n++ {
			switch got, err := readNumbered(w, from); {
			case err != nil:
				return fmt.Errorf("after frame %d: %w", n-1, err)
			case got != n:
				return outOfTurn(w, from, n, got)
			}
		}
		return nil
	})
}

// readNumbered returns the number of the next frame.
func readNumbered(w wire.Wire, from byte) (int, error) {
	f, err := w.ReadFrame(most)
	if err != nil {
		return 0, err
	}
	if len(f) < 9 {
		return 0, fmt.Errorf("a frame of %d bytes came, and none is so short", len(f))
	}
	n := binary.BigEndian.Uint64(f[1:])
	if n < 1 || n > many {
		return 0, fmt.Errorf("a frame with the number %d came, which was not written", n)
	}
	if err := same(f, numbered(from, int(n))); err != nil {
		return 0, fmt.Errorf("frame %d is altered: %w", n, err)
	}
	return int(n), nil
}

// outOfTurn returns the error for a wrong frame in the place of frame want.
func outOfTurn(w wire.Wire, from byte, want, got int) error {
	if got < want {
		return fmt.Errorf("frame %d came twice, the second time behind frame %d", got, want-1)
	}
	for range min(strays, many-got) {
		n, err := readNumbered(w, from)
		if n == want {
			return fmt.Errorf("frame %d is out of order: it came behind frame %d", want, got)
		}
		if err != nil || n == many {
			break
		}
	}
	return fmt.Errorf("frame %d is missing: frame %d came behind frame %d", want, got, want-1)
}

func inFrames(w wire.Wire, frames [][]byte) error { return w.WriteFrames(frames) }

func inBatches(w wire.Wire, frames [][]byte) error {
	return w.(wire.BatchWriter).WriteBatch(batch(frames...))
}

func inVectors(w wire.Wire, frames [][]byte) error {
	return w.(wire.VectorWriter).WriteVector(pieces(batch(frames...)))
}

// inTries writes with TryWriteBatch, and the rest with WriteBatch.
func inTries(w wire.Wire, frames [][]byte) error {
	t, data := w.(wire.TryWriter), batch(frames...)
	taken, err := t.TryWriteBatch(data)
	if err != nil || taken == len(data) {
		return err
	}
	return t.WriteBatch(data[taken:])
}
