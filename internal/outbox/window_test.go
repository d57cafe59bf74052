package outbox_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

// marks is a Marker that sends a mark whenever possible, and records the marks in flight.
type marks struct {
	way   []uint64
	short []bool
	never bool
}

func (m *marks) Due() bool   { return !m.never }
func (m *marks) Alone() bool { return len(m.way) == 0 }
func (m *marks) Departs(written uint64, short bool) {
	m.way, m.short = append(m.way, written), append(m.short, short)
}

// gated returns a box in which limit bytes may be in flight, and a flow.
func gated(t *testing.T, bound outbox.Bound) (*box, *outbox.Flow, *marks) {
	b, m := newBox(t), new(marks)
	b.Mark(m)
	f, _ := b.open(0)
	b.drain()
	b.Outbox.Open(bound)
	return b, f, m
}

func pings(frames []string) (n int) {
	for _, f := range frames {
		if f == "message.Ping" {
			n++
		}
	}
	return n
}

func TestGate_Bound(t *testing.T) {
	b, f, m := gated(t, outbox.Bound{Ceiling: 100 * kib, Part: 8 * kib, Spacing: 1 << 30})
	for range 300 {
		b.block(f, make([]byte, kib))
	}
	b.drain()
	written, full := b.InFlight()
	require.True(t, full)
	require.InDelta(t, 100*kib, written, 8*kib, "the bound, and a part at most")
	require.Len(t, m.way, 1, "the mark that will open the gate")
	require.Greater(t, b.Waiting(), 190)

	waiting := b.Waiting()
	write, err := b.PutControl(message.Credit{Pipe: 0, Limit: 1})
	require.NoError(t, err)
	require.True(t, write, "the sender of a Control does")
	require.Equal(t, []string{"message.Credit"}, b.drain())
	require.Equal(t, waiting, b.Waiting())

	require.True(t, b.Outbox.Open(outbox.Bound{Ceiling: 200 * kib, Part: 8 * kib, Spacing: 1 << 30}))
	require.NotEmpty(t, b.drain())
	written, full = b.InFlight()
	require.True(t, full)
	require.InDelta(t, 200*kib, written, 8*kib)
}

func TestGate_PassesFewUrgent(t *testing.T) {
	b, f, _ := gated(t, outbox.Bound{Ceiling: 20 * kib, Part: 4 * kib, Spacing: 1 << 30})
	for range 40 {
		b.block(f, make([]byte, kib))
	}
	b.drain()
	urgent, _ := b.open(9)
	require.Equal(t, []string{"Open 2"}, b.drain())
	b.block(urgent, make([]byte, 2*kib))
	require.Empty(t, b.drain(), "a large one waits")
	b.Outbox.Open(outbox.Bound{Ceiling: 21 * kib, Part: 4 * kib, Spacing: 1 << 30})
	require.Equal(t, "Block 2 "+string(make([]byte, 8)), slices.DeleteFunc(b.drain(), func(f string) bool { return f == "message.Ping" })[0], "but goes first")
	for range 100 {
		b.block(urgent, make([]byte, 500))
	}
	require.Len(t, b.drain(), 8, "4 KiB at most, until a mark comes back")
	require.Empty(t, b.drain())
	require.True(t, b.Outbox.Open(outbox.Bound{Ceiling: 1, Part: 4 * kib, Spacing: 1 << 30, Alone: true}))
	require.Len(t, b.drain(), 8)
}

func TestGate_UrgentSizes(t *testing.T) {
	b, f, _ := gated(t, outbox.Bound{Ceiling: 20 * kib, Part: 4 * kib, Spacing: 1 << 30})
	for range 40 {
		b.block(f, make([]byte, kib))
	}
	b.drain()
	urgent, _ := b.open(9)
	b.drain()
	b.Outbox.Open(outbox.Bound{Ceiling: 1, Part: 4 * kib, Spacing: 1 << 30, Alone: true})
	for range 6 {
		b.block(urgent, make([]byte, kib-4)) // and its length
	}
	require.Len(t, b.drain(), 4, "as large as they may be, and 4 KiB together")
	require.True(t, b.Outbox.Open(outbox.Bound{Ceiling: 1, Part: 4 * kib, Spacing: 1 << 30, Alone: true}))
	require.Len(t, b.drain(), 2)
	b.block(urgent, make([]byte, kib-3))
	require.Empty(t, b.drain(), "one byte too large")
}

func TestGate_EqualPriorities(t *testing.T) {
	b, f, _ := gated(t, outbox.Bound{Ceiling: 20 * kib, Part: 4 * kib, Spacing: 1 << 30})
	other, _ := b.open(0)
	for range 100 {
		b.block(f, make([]byte, 500))
		b.block(other, make([]byte, 500))
	}
	b.drain()
	written, _ := b.InFlight()
	require.InDelta(t, 20*kib, written, 4*kib)
	b.block(other, make([]byte, 10))
	require.Empty(t, b.drain())
}

func TestGate_BatchSize(t *testing.T) {
	b, f, _ := gated(t, outbox.Bound{Ceiling: 1 << 40, Part: 4 * kib, Spacing: 1 << 30})
	for range 64 {
		b.block(f, make([]byte, kib))
	}
	for {
		batch, _ := b.take()
		if batch == nil {
			break
		}
		require.Less(t, len(batch), 4*kib+200)
		b.Written(batch)
	}
}

func TestMarks_Spacing(t *testing.T) {
	b, f, m := gated(t, outbox.Bound{Ceiling: 1 << 40, Spacing: 64 * kib})
	sent := 0
	var frames []string
	for range 20 {
		for range 16 {
			b.block(f, make([]byte, 2*kib))
			sent += 2 * kib
		}
		frames = append(frames, b.drain()...)
	}
	require.InDelta(t, sent/(64*kib), pings(frames), 2)
	require.Len(t, m.way, pings(frames))
	require.True(t, slices.IsSorted(m.way), "they say how much was written before them")
	require.Equal(t, "message.Ping", frames[slices.Index(frames, "message.Ping")])
	require.NotEqual(t, "message.Ping", frames[len(frames)-1], "a mark waits for a message to go along with")
	require.True(t, m.short[1], "everything was sent between the marks")
}

func TestGate_WithoutMarker(t *testing.T) {
	b := newBox(t)
	f, _ := b.open(0)
	for range 1000 {
		b.block(f, make([]byte, kib))
	}
	require.Zero(t, pings(b.drain()))
	require.False(t, b.Nudge(false))
	_, full := b.InFlight()
	require.False(t, full)
}

func TestNudge_SendsALittle(t *testing.T) {
	b, f, m := gated(t, outbox.Bound{Ceiling: 20 * kib, Part: 4 * kib, Spacing: 1 << 30})
	m.never = true
	b.block(f, bytes.Repeat([]byte{1}, 200*kib)) // one that does not fit may pass alone
	for range 40 {
		b.block(f, make([]byte, kib))
	}
	b.drain()
	waiting := b.Waiting()
	require.Equal(t, 40, waiting)
	require.False(t, b.Nudge(false), "something has departed a moment ago")
	for waiting > 0 {
		require.True(t, b.Nudge(false))
		frames := b.drain()
		require.LessOrEqual(t, len(frames), 5, "a part")
		require.Less(t, b.Waiting(), waiting)
		waiting = b.Waiting()
		b.Nudge(false) // records that messages have departed
	}
}

func TestGate_ResetByResume(t *testing.T) {
	b, m := newBox(t), new(marks)
	b.Mark(m)
	b.Keep(func() uint64 { return 0 }, 1<<20)
	f, _ := b.open(0)
	b.drain()
	b.Outbox.Open(outbox.Bound{Ceiling: 20 * kib, Part: 4 * kib, Spacing: 4 * kib})
	for range 40 {
		b.block(f, make([]byte, kib))
	}
	b.drain()
	waiting := b.Waiting()
	require.NotZero(t, waiting)
	require.True(t, b.Halt(), "there is no writer while the gate is shut")
	_, err := b.Resume(0)
	require.NoError(t, err)
	b.Resent()
	m.way = nil
	require.Len(t, slices.DeleteFunc(b.drain(), func(f string) bool { return f == "message.Ping" }), waiting)
	_, full := b.InFlight()
	require.False(t, full)
}

// TestAttack_FlushWithoutMarks drops the messages of a Flush while the gate is closed and there is
// no writer.
func TestAttack_FlushWithoutMarks(t *testing.T) {
	for name, drop := range map[string]func(b *box, f *outbox.Flow){
		"canceled": func(b *box, f *outbox.Flow) { b.Cancel(f, outbox.Ended) },
		"finished": func(b *box, f *outbox.Flow) { b.Finish(f, outbox.Ended) },
		"thinned":  func(b *box, _ *outbox.Flow) { b.Thin() },
	} {
		t.Run(name, func(t *testing.T) {
			b, f, _ := gated(t, outbox.Bound{Ceiling: 20 * kib, Part: 4 * kib, Spacing: 1 << 30})
			for range 40 {
				b.put(f, outbox.Message{Type: message.BlockType, Payload: make([]byte, kib), Loss: 127})
			}
			b.drain()
			require.Positive(t, b.Waiting())
			flushed := b.Flush()
			require.False(t, isClosed(flushed))
			drop(b, f)
			require.Zero(t, b.Waiting())
			require.True(t, isClosed(flushed))
		})
	}
}
