package outbox_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/priority"
)

const kib = 1 << 10

// receiver assembles the frames of an Outbox, and checks the rules for parts.
type receiver struct {
	t       *testing.T
	story   []string          // parts as "+2", given up messages as "-2", other frames by describe
	whole   map[uint64]int    // of unfinished messages
	parts   map[uint64][]byte // their bytes so far
	message func(frame []byte)
}

func newReceiver(t *testing.T) *receiver {
	return &receiver{t: t, whole: map[uint64]int{}, parts: map[uint64][]byte{}, message: func([]byte) {}}
}

// reads reads frames, each behind its length.
func (r *receiver) reads(batch []byte) {
	for len(batch) > 0 {
		n := 4 + binary.BigEndian.Uint32(batch)
		frame := batch[4:n]
		batch = batch[n:]
		require.LessOrEqual(r.t, len(frame), message.MaxFrame)
		if kind, err := message.TypeOf(frame); err == nil && kind == message.PartType {
			r.part(frame)
			continue
		}
		r.story = append(r.story, describe(r.t, frame))
		r.message(frame)
	}
}

func (r *receiver) part(frame []byte) {
	p, err := message.ParsePart(frame)
	require.NoError(r.t, err)
	if p.GivenUp {
		require.NotEmpty(r.t, r.parts[p.Pipe])
		r.story = append(r.story, fmt.Sprint("-", p.Pipe))
		delete(r.parts, p.Pipe)
		return
	}
	r.story = append(r.story, fmt.Sprint("+", p.Pipe))
	if p.Whole > 0 {
		require.Empty(r.t, r.parts[p.Pipe], "the one before is unfinished")
		r.whole[p.Pipe] = int(p.Whole)
		_, err := message.ParseHead(&p)
		require.NoError(r.t, err)
	}
	got := append(r.parts[p.Pipe], p.Bytes...)
	require.LessOrEqual(r.t, len(got), r.whole[p.Pipe])
	r.parts[p.Pipe] = got
	if len(got) < r.whole[p.Pipe] {
		require.GreaterOrEqual(r.t, len(p.Bytes), message.LeastPart)
		return
	}
	delete(r.parts, p.Pipe)
	r.story = append(r.story, describe(r.t, got))
	r.message(got)
}

// batch takes one batch and reads it.
func (r *receiver) batch(o *outbox.Outbox) (more bool) {
	batch, _ := takeAll(o)
	r.reads(batch)
	return batch != nil
}

// all takes all batches, and returns the story since the last call.
func (r *receiver) all(o *outbox.Outbox) []string {
	for r.batch(o) {
	}
	story := r.story
	r.story = nil
	return story
}

func newDivided(t *testing.T, part int) (*box, *receiver) {
	b := newBox(t)
	b.Lend()
	b.Divide(part)
	return b, newReceiver(t)
}

// large is a Block of n bytes.
func large(n int) outbox.Message {
	return outbox.Message{Type: message.BlockType, Payload: bytes.Repeat([]byte("L"), n), Held: uint32(n)}
}

func TestParts_LargeMessage(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want []string
	}{
		"as large as a part":    {64 * kib, []string{"Open 0", "Block 0 LLLLLLLL"}},
		"a byte more":           {64*kib + 1, []string{"Open 0", "+0", "+0", "Block 0 LLLLLLLL"}},
		"head and payload fill": {128*kib - 8, []string{"Open 0", "+0", "+0", "Block 0 LLLLLLLL"}},
		"one byte beyond these": {128*kib - 7, []string{"Open 0", "+0", "+0", "+0", "Block 0 LLLLLLLL"}},
		"larger than buffers":   {6 << 20, append(append([]string{"Open 0"}, repeated("+0", 97)...), "Block 0 LLLLLLLL")},
	} {
		for _, lends := range []bool{true, false} {
			b := newBox(t)
			*b.Outbox = *outbox.New(0, 64<<20, overhead, 0, func(messages, bytes int) { b.messages += messages; b.bytes += bytes }, nil)
			if lends {
				b.Lend()
			}
			b.Divide(64 * kib)
			f, _ := b.open(0)
			b.put(f, large(c.size))
			require.Equal(t, c.want, newReceiver(t).all(b.Outbox), "%s %v", name, lends)
			require.Equal(t, 2, b.messages)
			require.Equal(t, c.size, b.bytes)
		}
	}
}

func repeated(s string, n int) (all []string) {
	for range n {
		all = append(all, s)
	}
	return all
}

func TestParts_UrgentBetween(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	low, _ := b.open(-1)
	r.all(b.Outbox)
	b.put(low, large(200*kib))
	r.batch(b.Outbox)
	high, _ := b.open(1)
	b.block(high, []byte("now"))
	r.batch(b.Outbox)
	r.batch(b.Outbox)
	b.block(high, []byte("again"))
	require.Equal(t, []string{"+0", "Open 2", "Block 2 now", "+0", "Block 2 again", "+0", "+0", "Block 0 LLLLLLLL"}, r.all(b.Outbox))
}

func TestParts_OnePerPriority(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	var flows []*outbox.Flow
	for _, p := range []priority.Priority{0, 0, 0, 1} {
		f, _ := b.open(p)
		flows = append(flows, f)
	}
	r.all(b.Outbox)
	b.put(flows[0], large(150*kib))
	b.put(flows[1], large(150*kib))
	b.block(flows[1], []byte("behind"))
	b.block(flows[2], []byte("small"))
	r.batch(b.Outbox)
	b.put(flows[3], large(70*kib))
	require.Equal(t, []string{
		"Block 4 small", "+6", "+6", "Block 6 LLLLLLLL", "+0", "+0", "+0", "Block 0 LLLLLLLL",
		"+2", "+2", "+2", "Block 2 LLLLLLLL", "Block 2 behind",
	}, r.all(b.Outbox))
}

// Events of a Block of three parts after some parts were sent.
func TestParts_EventsBetween(t *testing.T) {
	for left := range 4 {
		for event, c := range map[string]struct {
			do       func(b *box, f *outbox.Flow)
			drop     outbox.Reason
			silent   bool // without a report
			harmless bool // sending continues
		}{
			"nothing":  {do: func(*box, *outbox.Flow) {}, harmless: true},
			"thinned":  {do: func(b *box, _ *outbox.Flow) { b.Thin() }, harmless: true},
			"canceled": {do: func(b *box, f *outbox.Flow) { b.Cancel(f, outbox.Ended) }, drop: outbox.Ended},
			"finished": {do: func(b *box, f *outbox.Flow) { b.Finish(f, outbox.NoFunction) }, drop: outbox.NoFunction, silent: true},
			"closed":   {do: func(b *box, _ *outbox.Flow) { b.Close(nil) }, drop: outbox.Closed, silent: true},
			"expired":  {do: func(*box, *outbox.Flow) { fakeclock.Sleep(time.Minute) }, drop: outbox.Expired},
		} {
			synctest.Test(t, func(t *testing.T) {
				b, r := newDivided(t, 64*kib)
				f, _ := b.open(0)
				r.all(b.Outbox)
				m, a := large(150*kib), new(skipper)
				m.Sender = a
				if event == "thinned" {
					m.Loss = 127
				} else {
					m.Expires = time.Now().Add(time.Second)
				}
				b.put(f, m)
				for range left {
					r.batch(b.Outbox)
				}
				c.do(b, f)
				story := r.all(b.Outbox)
				want := repeated("+0", left)
				switch {
				case event == "thinned" && left == 0:
					c.drop, c.harmless = outbox.Thinned, false
				case c.harmless || left == 3:
					want = append(repeated("+0", 3), "Block 0 LLLLLLLL")
				case left > 0 && !c.silent:
					want = append(want, "-0")
				}
				name := fmt.Sprintf("%s after %d parts", event, left)
				require.Equal(t, want, append([]string(nil), story...), name)
				require.Equal(t, 2, b.messages, name)
				require.Equal(t, 150*kib, b.bytes, name)
				require.Zero(t, b.Underway(), name)
				if c.harmless || left == 3 {
					require.Empty(t, b.drops, name)
				} else {
					require.Equal(t, []outbox.Drop{{Reason: c.drop}}, b.drops, name)
				}
				if event == "expired" {
					sent, skipped := 150*kib+overhead, 1 // after a part the Block counts in full
					switch left {
					case 0:
						sent = 0
						require.Len(t, a.dropped, 1, name)
					case 3:
						skipped = 0
						fallthrough
					default:
						require.Empty(t, a.dropped, name)
					}
					require.Equal(t, sent, b.departed(f, r), name)
					b.put(f, outbox.Message{Type: message.BlockType, End: true})
					r.message = func(frame []byte) {
						m, err := message.ParseBlock(frame)
						require.NoError(t, err)
						require.EqualValues(t, skipped, m.Meta.Skipped, name)
					}
					r.all(b.Outbox)
				}
			})
		}
	}
}

// countable returns how many of some frames are counted by Acks.
func countable(frames []byte) (n uint64) {
	for ; len(frames) > 0; frames = frames[4+binary.BigEndian.Uint32(frames):] {
		if message.Countable(frames[4 : 4+binary.BigEndian.Uint32(frames)]) {
			n++
		}
	}
	return n
}

// A Wire is lost with the next part of a Block of three parts, and something happens before the
// resume.
func TestParts_CutBetween(t *testing.T) {
	for left := range 4 {
		for event, do := range map[string]func(b *box, f *outbox.Flow){
			"nothing":  func(*box, *outbox.Flow) {},
			"canceled": func(b *box, f *outbox.Flow) { b.Cancel(f, outbox.Ended) },
			"expired":  func(*box, *outbox.Flow) { fakeclock.Sleep(time.Minute) },
			"behind":   func(b *box, f *outbox.Flow) { b.block(f, []byte("behind")) },
		} {
			t.Run(fmt.Sprintf("%s after %d parts", event, left), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b, r := newBox(t), newReceiver(t)
					b.Keep(func() uint64 { return 0 }, 1<<20)
					b.Divide(64 * kib)
					f, _ := b.open(0)
					m, arrived := large(150*kib), uint64(0)
					m.Expires = time.Now().Add(time.Second)
					b.put(f, m)
					for range 1 + left { // the Open is the first batch
						batch, _ := b.Take()
						arrived += countable(batch)
						r.reads(batch)
						b.Written(batch)
					}
					lost, _ := b.Take()
					b.Halt()
					b.Written(lost)
					do(b, f)
					missing, err := b.Resume(arrived)
					require.NoError(t, err)
					for _, frame := range missing {
						r.reads(frame)
					}
					b.Resent()
					want := append([]string{"Open 0"}, repeated("+0", min(left+1, 3))...)
					switch {
					case left >= 2:
						want = append(want, "Block 0 LLLLLLLL")
					case event == "canceled", event == "expired":
						want = append(want, "-0")
					default:
						want = append(want, append(repeated("+0", 2-left), "Block 0 LLLLLLLL")...)
					}
					if event == "behind" {
						want = append(want, "Block 0 behind")
					}
					require.Equal(t, want, r.all(b.Outbox))
					require.Empty(t, r.parts)
				})
			})
		}
	}
}

// A path with less room than a part shortens the parts.
func TestParts_FollowPath(t *testing.T) {
	for room, want := range map[int]int{1: 15, 10 * kib: 6, 30 * kib: 2, 70 * kib: 0} {
		b, r := newDivided(t, 64*kib)
		f, _ := b.open(0)
		r.all(b.Outbox)
		b.Open(outbox.Bound{Part: room})
		b.put(f, large(60*kib-100))
		require.Equal(t, append(repeated("+0", want), "Block 0 LLLLLLLL"), r.all(b.Outbox), "a room of %d bytes", room)
	}
}

func TestParts_OpenGivenUp(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	f, o, _ := b.enter(0, string(make([]byte, 100*kib)))
	r.batch(b.Outbox)
	require.Equal(t, []uint64{0}, o.ids, "from the first part on the peer knows of it")
	departed, unsent := b.Cancel(f, outbox.Ended)
	require.True(t, departed)
	require.True(t, unsent)
	_, _, _ = b.enter(0, "next")
	require.Equal(t, []string{"+0", "-0", "Open 2"}, r.all(b.Outbox))
	require.Zero(t, o.discarded)

	g, o, _ := b.enter(0, string(make([]byte, 100*kib)))
	r.batch(b.Outbox)
	b.Close(message.SessionClose{})
	require.Equal(t, 1, o.discarded, "it has not run, and never will")
	require.Equal(t, []string{"+4", "message.SessionClose"}, r.all(b.Outbox))
	departed, _ = b.Cancel(g, outbox.Ended)
	require.True(t, departed)
	require.Empty(t, r.all(b.Outbox), "nothing follows the end of the session")
}

func TestParts_Abort(t *testing.T) {
	b, r := newDivided(t, 4*kib)
	for _, n := range []int{60 * kib, 70 * kib} {
		f := outbox.AcceptedFlow(0, 1)
		b.put(&f, outbox.Message{Type: message.CloseType, Abort: &codec.Abort{Code: 7, Detail: make([]byte, n)}})
	}
	require.Equal(t, append(append([]string{"Close 1"}, repeated("+1", 18)...), "Close 1"), r.all(b.Outbox))
}

func TestFlush_WaitsForLastPart(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	f, _ := b.open(0)
	b.put(f, large(100*kib))
	done := b.Flush()
	r.batch(b.Outbox)
	r.batch(b.Outbox)
	require.False(t, isClosed(done))
	r.all(b.Outbox)
	require.True(t, isClosed(done))
}

// The guard of low priorities counts the bytes of parts.
func TestParts_GuardCountsBytes(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	*b.Outbox = *outbox.New(0, 64<<20, overhead, 0.05, func(int, int) {}, nil)
	b.Divide(64 * kib)
	high, _ := b.open(1)
	low, _ := b.open(-1)
	r.all(b.Outbox)
	b.put(high, large(8<<20))
	b.put(low, large(8<<20))
	story := r.all(b.Outbox)
	parts, lows := 0, 0
	for _, s := range story[:128] {
		switch s {
		case "+0":
			parts++
		case "+2":
			lows++
		}
	}
	require.InDelta(t, 0.05*128, lows, 2)
	require.Equal(t, 128, parts+lows)
}
