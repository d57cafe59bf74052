package wiretest

import (
	"math/rand/v2"
	"time"
)

// Faults are what goes wrong with a connection, as seen from the end that is made faulty. The zero
// value is a connection without faults.
//
// Faults depend on nothing but these values and the bytes: the same bytes meet the same faults at
// the same places, however they are divided into writes. What the application does when it is told
// may differ all the same.
type Faults struct {
	// Seed chooses what is left to chance: how long each jitter is, and which bit is flipped. Any
	// value will do.
	Seed uint64

	// Out is for what this end writes, In for what it reads.
	Out, In Direction
}

// Direction is what goes wrong in one direction of a connection. Zero and negative values stand for
// "not at all".
//
// Places are numbers of bytes since the connection began, of the byte stream: with [FaultyConn] the
// bytes of the connection, with [Faulty] those that [wire.FromConn] would send, which are each
// frame behind 4 bytes of length.
type Direction struct {
	// Delay is how long every byte is under way. Up to 1 MiB is under way at a time; then writing
	// waits.
	Delay time.Duration

	// Jitter is up to how much longer than Delay each KiB is under way. Nothing overtakes what was
	// written before it.
	Jitter time.Duration

	// Bandwidth is how many bytes pass in a second. There is no queue before it but what Delay
	// holds: [Link] is for paths that are slow, long or both, and that nothing goes wrong with.
	Bandwidth int

	// CorruptAt flips one bit of that byte; 1 is the first.
	CorruptAt int64

	// CutAfter loses the connection, in both directions, when that many bytes have passed. It is
	// like [Conn.Cut], but for the bytes before, which arrive.
	CutAfter int64

	// TruncateAfter ends the connection, in both directions, as though the sender had closed it in
	// good order when that many bytes have passed: this end reads [io.EOF], and its writes fail
	// with an error that wraps [syscall.EPIPE]. Inside a frame, ReadFrame of a Wire says
	// [io.ErrUnexpectedEOF].
	TruncateAfter int64

	// StallAfter lets nothing more pass when that many bytes have passed, until Heal.
	StallAfter int64

	// VanishAfter loses every byte after that many, without a word: writing goes on to succeed, and
	// reading waits. In both directions this is a connection that is half-open.
	VanishAfter int64
}

// slow reports whether bytes are under way for some time.
func (d *Direction) slow() bool { return d.Delay > 0 || d.Jitter > 0 }

// latency returns how long the KiB with this number is under way.
func (d *Direction) latency(dice dice, kib int64) time.Duration {
	t := max(d.Delay, 0)
	if d.Jitter > 0 {
		t += time.Duration(dice.roll(uint64(kib)+1) % uint64(d.Jitter))
	}
	return t
}

// transmission returns how long it takes for n bytes to pass.
func (d *Direction) transmission(n int) time.Duration {
	if d.Bandwidth <= 0 {
		return 0
	}
	return time.Duration(float64(n) / float64(d.Bandwidth) * float64(time.Second))
}

// chunk is how many bytes are moved at once.
const chunk = 32 << 10

// piece returns how many bytes pass at a time: what passes in a millisecond.
func (d *Direction) piece() int {
	if d.Bandwidth <= 0 {
		return chunk
	}
	return min(max(d.Bandwidth/1000, 1), chunk)
}

// until returns how many of n bytes, the first of which is number at+1, come before the next place
// where something happens.
func (d *Direction) until(at int64, n int) int {
	for _, place := range []int64{d.CutAfter, d.TruncateAfter, d.StallAfter, d.VanishAfter} {
		if place > at {
			n = int(min(int64(n), place-at))
		}
	}
	return n
}

// dice is chance that repeats itself: the same number for the same question.
type dice struct{ seed, direction uint64 }

func (d dice) roll(question uint64) uint64 {
	return rand.NewPCG(d.seed, question<<1|d.direction).Uint64()
}
