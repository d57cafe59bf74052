package outbox_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/priority"
)

func TestExpiry_OpenNeverLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		b.fill()
		f, o := outbox.NewFlow(priority.Normal), new(opening)
		_, err := b.Put(&f, &outbox.Message{Type: message.OpenType, Departer: o, Expires: time.Now().Add(time.Second), Marker: "mine"})
		require.NoError(t, err)
		b.block(&f, []byte("of a pipe that never opens"))
		fakeclock.Sleep(time.Second)
		require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx"}, b.drain())
		require.Equal(t, 1, o.discarded)
		require.Empty(t, o.ids)
		require.Equal(t, []outbox.Drop{{Open: true, Reason: outbox.Expired, Marker: "mine"}, {Reason: outbox.Expired}}, b.drops)
		require.Equal(t, 4, b.messages, "dropped messages no longer count")
		_, err = b.Put(&f, &outbox.Message{Type: message.BlockType})
		require.ErrorIs(t, err, outbox.ErrEnded)
	})
}

func TestTTL_IsTheRemainingTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		f := b.fill()
		b.send(f, outbox.Message{Payload: []byte("waits"), Expires: time.Now().Add(time.Second)})
		fakeclock.Sleep(400*time.Millisecond + time.Nanosecond)
		got := b.blocks(0)
		require.EqualValues(t, 600, got[1].Meta.TTL, "in milliseconds, rounded up")
	})
}

func TestDrop_IsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, c := range map[string]struct {
			after outbox.Message
			want  message.Block
		}{
			"by the next Block":        {outbox.Message{Type: message.BlockType, Payload: []byte("next")}, message.Block{Payload: []byte("next"), Meta: message.Meta{Skipped: 2}}},
			"by the end":               {outbox.Message{Type: message.BlockType, End: true}, message.Block{End: true, Meta: message.Meta{Skipped: 2}}},
			"by an end before a Close": {outbox.Message{Type: message.CloseType}, message.Block{End: true, Meta: message.Meta{Skipped: 2}}},
		} {
			b := newBox(t)
			f := b.fill()
			for _, marker := range []string{"one", "two"} {
				b.send(f, outbox.Message{Payload: []byte("late"), Expires: time.Now().Add(time.Second), Marker: marker})
			}
			_, err := b.Put(f, &c.after)
			require.NoError(t, err)
			fakeclock.Sleep(time.Second)
			got := b.blocks(0)
			require.Equal(t, c.want, got[len(got)-1], name)
			require.Len(t, got, 2, name)
			require.Equal(t, []outbox.Drop{{Reason: outbox.Expired, Marker: "one"}, {Reason: outbox.Expired, Marker: "two"}}, b.drops, name)
		}
	})
}

// TestThin_KeepsToLossRate judges Blocks of random loss rates. After each Block it compares the
// number of drops with the permitted number.
func TestThin_KeepsToLossRate(t *testing.T) {
	for _, rate := range []int{0, 1, 64, 126, 127, -1} { // -1: random
		rnd := rand.New(rand.NewPCG(1, 1))
		b := newBox(t)
		f := outbox.AcceptedFlow(0, 1)
		allowed, gap, widest := 0, 0, 0
		for range 10_000 {
			loss := rate
			if rate < 0 {
				loss = rnd.IntN(128)
			}
			allowed += loss
			before := len(b.drops)
			b.send(&f, outbox.Message{Payload: []byte("x"), Loss: uint8(loss), Pressed: true})
			require.LessOrEqual(t, len(b.drops)*message.MaxLoss, allowed)
			require.Greater(t, (len(b.drops)+1)*message.MaxLoss, allowed, "and it is not less than that allows")
			if len(b.drops) > before {
				gap++
				widest = max(widest, gap)
			} else {
				gap = 0
			}
			b.drainQuietly()
		}
		switch rate {
		case 127:
			require.Len(t, b.drops, 10_000)
		case 64:
			require.Equal(t, 2, widest, "drops are spread, not bunched")
		}
	}
}

func TestThin_OnlyUnderPressure(t *testing.T) {
	b := newBox(t)
	f := outbox.AcceptedFlow(0, 1)
	for range 100 {
		b.send(&f, outbox.Message{Loss: 100})
	}
	got := b.blocks(1)
	require.Len(t, got, 100)
	require.EqualValues(t, 100, got[50].Meta.Loss)
}

func TestThin_JudgesOnce(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	for range 100 {
		b.send(f, outbox.Message{Payload: []byte("lossy"), Loss: 64})
		b.send(f, outbox.Message{Payload: []byte("keep")})
	}
	b.send(f, outbox.Message{End: true, Loss: 127})
	b.Thin()
	require.Len(t, b.drops, 100*64/127)
	b.Thin()
	require.Len(t, b.drops, 100*64/127, "a survivor is never judged again")
	got := b.blocks(0)[1:]
	require.Len(t, got, 201-len(b.drops))
	var skipped uint64
	for _, m := range got {
		skipped += m.Meta.Skipped
		if !m.End {
			require.Zero(t, m.Meta.Loss, "survivors travel with loss 0")
		}
	}
	require.EqualValues(t, len(b.drops), skipped)
	require.True(t, got[len(got)-1].End)
}

func TestGap_IsReportedInPlace(t *testing.T) {
	for name, drop := range map[string]func(b *box, f *outbox.Flow){
		"dropped on arrival": func(b *box, f *outbox.Flow) {
			b.send(f, outbox.Message{Payload: []byte("b"), Loss: 127, Pressed: true})
		},
		"thinned in the queue": func(b *box, f *outbox.Flow) {
			b.send(f, outbox.Message{Payload: []byte("b"), Loss: 127})
		},
		"expired in the queue": func(b *box, f *outbox.Flow) { b.send(f, outbox.Message{Payload: []byte("b"), Expires: time.Now()}) },
	} {
		b := newBox(t)
		f := b.fill()
		b.send(f, outbox.Message{Payload: []byte("a")})
		drop(b, f)
		b.send(f, outbox.Message{Payload: []byte("c")})
		drop(b, f)
		drop(b, f)
		b.Thin()
		b.send(f, outbox.Message{End: true})
		var skipped []uint64
		for _, m := range b.blocks(0)[1:] {
			skipped = append(skipped, m.Meta.Skipped)
		}
		require.Equal(t, []uint64{0, 1, 2}, skipped, "%s: nothing before a, one before c, two before the end", name)
	}
}
