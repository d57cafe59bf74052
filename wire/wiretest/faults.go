package wiretest

import (
	"math/rand/v2"
	"time"
)

// Faults are injected into a connection at the faulty end. The zero value is a connection without
// faults.
//
// Faults depend only on these values and the bytes: the same bytes meet the same faults at the same
// places, however they are divided into writes. The reaction of the application may differ
// nevertheless.
type Faults struct {
	// Seed seeds the random choices: how long each jitter is, and which bit is flipped. Any value
	// is valid.
	Seed uint64

	// Out is for the bytes that this end writes, In for those that it reads.
	Out, In Direction
}

// Direction has the faults of one direction of a connection. Zero and negative values stand for
// "not at all".
//
// Positions count the bytes of the stream since the connection began: with [FaultyConn] the bytes
// of the connection, with [Faulty] those that [wire.FromConn] would send, which are each frame
// behind 4 bytes of length.
type Direction struct {
	// Delay is the latency of every byte. Up to 1 MiB is in flight at a time; beyond that, writing
	// blocks.
	Delay time.Duration

	// Jitter is the maximum additional latency of each KiB. Bytes stay in order.
	Jitter time.Duration

	// Bandwidth is the number of bytes per second. It has no queue except the bytes in flight of
	// Delay: [Link] is for paths with low bandwidth, high latency or both, and without faults.
	Bandwidth int

	// CorruptAt flips one bit of the byte at that position; 1 is the first.
	CorruptAt int64

	// CutAfter loses the connection, in both directions, after that many bytes. It is like
	// [Conn.Cut], except that the bytes before it arrive.
	CutAfter int64

	// TruncateAfter ends the connection, in both directions, after that many bytes, as by a
	// graceful close of the sender: this end reads [io.EOF], and its writes fail with an error that
	// wraps [syscall.EPIPE]. Inside a frame, ReadFrame of a Wire returns [io.ErrUnexpectedEOF].
	TruncateAfter int64

	// StallAfter stalls the direction after that many bytes, until Heal.
	StallAfter int64

	// VanishAfter silently loses every byte after that many: writing still succeeds, and reading
	// blocks. Set in both directions, it makes a half-open connection.
	VanishAfter int64
}

// slow reports whether bytes have a latency.
func (d *Direction) slow() bool { return d.Delay > 0 || d.Jitter > 0 }

// latency returns the latency of the KiB with this number.
func (d *Direction) latency(dice seededChance, kib int64) time.Duration {
	t := max(d.Delay, 0)
	if d.Jitter > 0 {
		t += time.Duration(dice.roll(uint64(kib)+1) % uint64(d.Jitter))
	}
	return t
}

// transmission returns the time for n bytes to pass.
func (d *Direction) transmission(n int) time.Duration {
	if d.Bandwidth <= 0 {
		return 0
	}
	return time.Duration(float64(n) / float64(d.Bandwidth) * float64(time.Second))
}

// chunk is how many bytes are moved at once.
const chunk = 32 << 10

// piece returns how many bytes pass at a time: those of a millisecond.
func (d *Direction) piece() int {
	if d.Bandwidth <= 0 {
		return chunk
	}
	return min(max(d.Bandwidth/1000, 1), chunk)
}

// until returns how many of n bytes, starting with number at+1, precede the next fault.
func (d *Direction) until(at int64, n int) int {
	for _, place := range []int64{d.CutAfter, d.TruncateAfter, d.StallAfter, d.VanishAfter} {
		if place > at {
			n = int(min(int64(n), place-at))
		}
	}
	return n
}

// seededChance is deterministic chance: the same number for the same arguments.
type seededChance struct{ seed, direction uint64 }

func (d seededChance) roll(question uint64) uint64 {
	return rand.NewPCG(d.seed, question<<1|d.direction).Uint64()
}
