package wiretest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/asterisque-go/asterisque/wire"
)

func sizes(r *rig) {
	var frames [][]byte
	for i, size := range []int{0, 1, 2, 3, 4, 5, 7, 8, 1019, 1020, 1021, 1024, 4096, 16384, 32763, 32764, 32765, 32768, 65531, 65535, 65536, 65537, 1 << 20, 1<<20 + 1, 3} {
		frames = append(frames, frame(i, size))
	}
	r.must(writeAll(r.a, frames), expect(r.b, frames...))
	r.must(write(r.a, frames...), expect(r.b, frames...))
}

func emptyFrames(r *rig) {
	frames := [][]byte{{}, {}, []byte("between"), {}, nil, []byte("last")}
	r.must(writeAll(r.a, frames), expect(r.b, frames...))
	r.must(writeAll(r.a, nil))
	r.must(write(r.a, frames...), expect(r.b, frames...))
}

func order(r *rig) {
	var frames [][]byte
	for i := range 2000 {
		frames = append(frames, frame(i, 8+i%100))
	}
	r.must(write(r.a, frames...), write(r.b, frames...), expect(r.a, frames...), expect(r.b, frames...))
}

func load(r *rig) {
	r.must(writeLoad(r.a, 1), writeLoad(r.b, 2), expectLoad(r.a, 2), expectLoad(r.b, 1))
}

const (
	loadRounds    = 100
	framesInRound = 20
)

// loadFrame returns the next frame of a load: mostly small, sometimes large.
func loadFrame(r *rand.Rand) []byte {
	size := r.IntN(300)
	if r.IntN(20) == 0 {
		size = r.IntN(100_000)
	}
	return frame(r.Int(), size)
}

// writeLoad writes the load with this seed, several frames at a time, with all methods that w has.
func writeLoad(w wire.Wire, seed uint64) checkTask {
	return start("writing under load", func() error {
		r := rand.New(rand.NewPCG(seed, 0))
		bw, _ := w.(wire.BatchWriter)
		for i := range loadRounds {
			var frames [][]byte
			for range framesInRound {
				frames = append(frames, loadFrame(r))
			}
			var err error
			if bw != nil && i%2 == 1 {
				err = bw.WriteBatch(batch(frames...))
			} else {
				err = w.WriteFrames(frames)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func expectLoad(w wire.Wire, seed uint64) checkTask {
	return start("reading under load", func() error {
		r := rand.New(rand.NewPCG(seed, 0))
		for i := range loadRounds * framesInRound {
			got, err := w.ReadFrame(most)
			if err == nil {
				err = same(got, loadFrame(r))
			}
			if err != nil {
				return fmt.Errorf("frame %d: %w", i, err)
			}
		}
		return nil
	})
}

func exactlyMax(r *rig) {
	for i, max := range []int{0, 1, 100, 65536, 1 << 20} {
		want := frame(i, max)
		read := start(fmt.Sprintf("reading %d bytes with that as the limit", max), func() error {
			got, err := r.b.ReadFrame(max)
			if err == nil {
				err = same(got, want)
			}
			return err
		})
		r.must(write(r.a, want), read)
	}
}

func overMax(r *rig) {
	// the Wire may or may not write the second; zeros look like the lengths of empty frames
	write(r.a, frame(1, 1000), make([]byte, 1001))
	read := func() error {
		_, err := r.b.ReadFrame(1000)
		return err
	}
	r.ok(r.do("ReadFrame", read), "reading a frame as large as allowed")
	for _, which := range []string{"the first", "another"} {
		if err := r.do("ReadFrame", read); !errors.Is(err, wire.ErrFrameTooLarge) {
			r.fail("%s ReadFrame(1000) of 1001 bytes returned the error %v, not wire.ErrFrameTooLarge", which, err)
		}
	}
}

func buffersNotKept(r *rig) { r.notKept(r.a.WriteFrames) }

// notKept writes from the same memory repeatedly, and reads only after it may have been
// overwritten.
func (r *rig) notKept(write func(frames [][]byte) error) {
	r.Helper()
	const rounds, size = 30, 100
	written := start("writing", func() error {
		list, mem := make([][]byte, 2), make([]byte, 2*size)
		for n := range rounds {
			list[0], list[1] = mem[:size], mem[size:]
			fill(list[0], 2*n)
			fill(list[1], 2*n+1)
			if err := write(list); err != nil {
				return err
			}
			clear(mem)
			clear(list)
		}
		return nil
	})
	r.soon(written)
	var frames [][]byte
	for i := range 2 * rounds {
		frames = append(frames, frame(i, size))
	}
	read := expect(r.b, frames...)
	read.what = "reading frames whose memory was overwritten after writing"
	r.must(written, read)
}

func frameStaysValid(r *rig) {
	const n = 50
	for round, size := range []int{100, 5000, 100_000} {
		var frames [][]byte
		for i := range n {
			frames = append(frames, frame(1000*round+i, size))
		}
		written := write(r.a, frames...)
		var got []byte
		r.ok(r.do("ReadFrame", func() (err error) {
			got, err = r.b.ReadFrame(most)
			return err
		}), "ReadFrame")
		r.soon(written) // so that the Wire may read ahead
		r.ok(same(got, frames[0]), "keeping a frame until the next ReadFrame")
		r.must(written, expect(r.b, frames[1:]...))
	}
}

func addresses(r *rig) {
	for _, w := range []wire.Wire{r.a, r.b} {
		local, remote := r.addresses(w)
		if local == nil || remote == nil {
			r.fail("LocalAddr is %v and RemoteAddr is %v; neither may be nil", local, remote)
		}
		before := fmt.Sprint(local.Network(), local, remote.Network(), remote)
		r.close(w)
		local, remote = r.addresses(w)
		if local == nil || remote == nil || before != fmt.Sprint(local.Network(), local, remote.Network(), remote) {
			r.fail("the addresses have changed with Close: from %s to %v and %v", before, local, remote)
		}
	}
}

func (r *rig) addresses(w wire.Wire) (local, remote net.Addr) {
	r.Helper()
	r.returns("LocalAddr", func() { local = w.LocalAddr() })
	r.returns("RemoteAddr", func() { remote = w.RemoteAddr() })
	return local, remote
}
