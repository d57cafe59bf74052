package priority_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/priority"
)

const (
	kib     = 1 << 10
	quantum = 4 * kib // bytes that a flow gets in a round
	rounds  = 50
)

// backlog is flows that always have messages waiting in one queue.
type backlog struct {
	t     *testing.T
	q     priority.Queue[message]
	fs    []*priority.Flow[message]
	size  func(flow int) int // of the next message of a flow
	under int                // the flow that has sent part of a message; -1: there is none

	sum   int   // bytes that have left
	got   []int // sent bytes of each flow
	last  []int // sum after the last message of each flow
	waits []int // most bytes of other flows between two messages of a flow
}

func newBacklog(t *testing.T, flows int, size func(flow int) int) *backlog {
	b := &backlog{t: t, size: size, under: -1, last: make([]int, flows)}
	for i := range flows {
		b.fs = append(b.fs, &priority.Flow[message]{})
		b.fill(i)
	}
	return b
}

func (b *backlog) fill(flow int) {
	for b.fs[flow].Len() < 2 {
		size := b.size(flow)
		b.q.Push(b.fs[flow], message{flow: flow, size: size}, size)
	}
}

// counts sends and counts the given bytes, at most most of them at a time.
func (b *backlog) counts(bytes, most int) {
	b.got, b.waits = make([]int, len(b.fs)), make([]int, len(b.fs))
	for end := b.sum + bytes; b.sum < end; {
		flow, n := b.take(most)
		b.got[flow] += n
		b.waits[flow] = max(b.waits[flow], b.sum-b.last[flow])
		b.sum += n
		b.last[flow] = b.sum
	}
}

// take sends at most most bytes, and returns their flow and their number.
func (b *backlog) take(most int) (flow, n int) {
	var rest int
	b.q.Take(most, func(m *message, size int) int {
		flow, n = m.flow, min(size, most)
		rest = size - n
		return n
	})
	if rest > 0 {
		if b.under >= 0 && b.under != flow {
			require.Equal(b.t, b.under, flow, "of large messages one at a time is under way")
		}
		b.under = flow
		return flow, n
	}
	if flow == b.under {
		b.under = -1
	}
	b.fill(flow)
	return flow, n
}

// jain returns Jain's index: 1 if all are equal, one part in n if one of n has all.
func jain(got []int) float64 {
	var sum, squares float64
	for _, n := range got {
		sum += float64(n)
		squares += float64(n) * float64(n)
	}
	return sum * sum / squares / float64(len(got))
}

// each calls test with numbers of flows, and of bytes that leave at a time.
func each(test func(flows, most int)) {
	for _, flows := range []int{2, 20, 200} {
		for _, most := range []int{512, 2 * kib, 8 * kib, 64 * kib} {
			test(flows, most)
		}
	}
}

// A turn covers at least one message, and one message at a time is being sent.
func TestQueue_EqualFlows(t *testing.T) {
	for _, size := range []int{kib, 8 * kib, 64 * kib, 1024 * kib} {
		each(func(flows, most int) {
			b := newBacklog(t, flows, func(int) int { return size })
			turn := max(size, quantum)
			b.counts(min(rounds*flows*turn, 1<<30), most)
			name := fmt.Sprintf("%d flows with messages of %d bytes, %d at a time", flows, size, most)
			require.Greater(t, jain(b.got), 0.98, name)
			for _, n := range b.waits {
				// and once the bytes that the first flow gets before the other ones arrive
				require.LessOrEqual(t, n, (flows-1)*(turn+min(size, most))+quantum, "%s: a turn of each other flow", name)
			}
		})
	}
}

func TestQueue_MixedMessages(t *testing.T) {
	any := func(rnd *rand.Rand) int { return 1 + rnd.IntN(512<<rnd.IntN(8)) }
	for name, size := range map[string]func(rnd *rand.Rand, flow int) int{
		"from flow to flow":       func(_ *rand.Rand, flow int) int { return 512 << (flow % 8) },
		"from message to message": func(rnd *rand.Rand, _ int) int { return any(rnd) },
		"both": func(rnd *rand.Rand, flow int) int {
			return []int{64 * kib, 3 * kib, 1 + rnd.IntN(256), any(rnd)}[flow%4]
		},
	} {
		each(func(flows, most int) {
			rnd := rand.New(rand.NewPCG(1, 1))
			b := newBacklog(t, flows, func(flow int) int { return size(rnd, flow) })
			b.counts(rounds*flows*quantum, most)
			require.Greater(t, jain(b.got), 0.98, "%s: %d flows, %d bytes at a time", name, flows, most)
		})
	}
}

// Flows with messages that are sent whole wait for one turn of each other flow, and not for the end
// of a message in parts.
func TestQueue_SmallWaitOneRound(t *testing.T) {
	each(func(flows, most int) {
		b := newBacklog(t, flows, func(flow int) int {
			if flow%2 == 0 {
				return 512
			}
			return 1024 * kib
		})
		b.counts(rounds*flows*quantum, most)
		for i := 0; i < flows; i += 2 {
			require.LessOrEqual(t, b.waits[i], (flows-1)*(quantum+most), "%d flows, %d bytes at a time", flows, most)
		}
	})
}

// TestQueue_FairAfterAnything adds and removes flows, with parts of any size, before it counts.
func TestQueue_FairAfterAnything(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		b := newBacklog(t, 20, func(int) int { return 1 + rnd.IntN(512<<rnd.IntN(8)) })
		for range 2000 {
			flow := rnd.IntN(len(b.fs))
			switch rnd.IntN(40) {
			case 0:
				b.q.Clear(b.fs[flow], func(message) {})
			case 1:
				b.q.Filter(func(m *message) bool { return m.flow != flow })
			case 2:
				b.q.Pop()
			case 3:
				b.fill(flow)
				continue
			default:
				if b.q.Len() > 0 {
					b.take(512 << rnd.IntN(8))
				}
				continue
			}
			b.under = -1 // it may have been dropped
		}
		for i := range b.fs {
			b.fill(i)
		}
		b.under = -1
		b.counts(rounds*len(b.fs)*16*kib, 2*kib)
		require.Greater(t, jain(b.got), 0.98, "seed %d", seed)
	}
}
