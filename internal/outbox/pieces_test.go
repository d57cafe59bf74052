package outbox_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

// departed returns the cost sent on f.
func (b *box) departed(f *outbox.Flow, r *receiver) int {
	s := &skipper{wants: 0}
	b.skip(f, s, 0)
	r.all(b.Outbox)
	require.Len(b.t, s.sent, 2)
	return int(s.sent[0])
}

// piece returns a piece of a Block of whole bytes.
func piece(whole, offset, n int) outbox.Message {
	return outbox.Message{
		Type: message.BlockType, Payload: bytes.Repeat([]byte("L"), n), Held: uint32(n),
		Whole: uint32(whole), Offset: uint32(offset),
	}
}

func TestPieces_MakeTheBlock(t *testing.T) {
	const whole = 100 * kib
	sizes := []int{kib, 40 * kib, 57 * kib, kib, kib}
	for name, c := range map[string]struct {
		part int
		want []string
	}{
		"each is a part":      {64 * kib, repeated("+0", 5)},
		"parts are smaller":   {20 * kib, repeated("+0", 8)},
		"parts end with them": {10*kib - 100, repeated("+0", 13)}, // and never hold less than 1 KiB
	} {
		for _, waits := range []bool{false, true} {
			b, r := newDivided(t, c.part)
			f, _ := b.open(0)
			if !waits {
				r.all(b.Outbox)
			}
			var story []string
			at := 0
			for _, n := range sizes {
				b.put(f, piece(whole, at, n))
				if at += n; !waits {
					story = append(story, r.all(b.Outbox)...)
				}
			}
			r.message = func(frame []byte) {
				m, err := message.ParseBlock(frame)
				if err == nil {
					require.Equal(t, bytes.Repeat([]byte("L"), whole), m.Payload, name)
				}
			}
			story = append(story, r.all(b.Outbox)...)
			if waits {
				story = story[1:] // the Open
			}
			require.Equal(t, append(c.want, "Block 0 LLLLLLLL"), story, "%s, waiting: %v", name, waits)
			require.Equal(t, 6, b.messages)
			require.Equal(t, whole+overhead, b.departed(f, r))
			require.Zero(t, b.Underway())
		}
	}
}

func TestPieces_OthersBetween(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	f, _ := b.open(0)
	other, _ := b.open(0)
	r.all(b.Outbox)
	b.put(f, piece(4*kib, 0, kib))
	require.Equal(t, []string{"+0"}, r.all(b.Outbox))
	require.Zero(t, b.Underway(), "it waits for credit, and not for the Wire")
	b.block(other, []byte("other"))
	b.put(f, stops)
	require.Equal(t, []string{"Block 2 other", "message.Stop"}, r.all(b.Outbox))
	b.put(f, piece(4*kib, kib, 3*kib))
	b.block(f, []byte("behind"))
	require.Equal(t, []string{"+0", "Block 0 LLLLLLLL", "Block 0 behind"}, r.all(b.Outbox))
}

func TestPieces_RestNeverComes(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *box, f *outbox.Flow)
		want []string
		sent int
	}{
		"the sender gives up": {func(b *box, f *outbox.Flow) { b.put(f, piece(4*kib, 4*kib, 0)) }, []string{"-0"}, 4*kib + overhead},
		"a Block follows": {func(b *box, f *outbox.Flow) {
			b.put(f, piece(4*kib, 4*kib, 0))
			b.block(f, []byte("next"))
		}, []string{"-0", "Block 0 next"}, 4*kib + overhead + 4 + overhead},
		"the direction ends": {func(b *box, f *outbox.Flow) { b.put(f, end) }, []string{"-0", "Block 0 "}, -1},
		"the handler answers": {func(b *box, f *outbox.Flow) {
			b.put(f, outbox.Message{Type: message.CloseType, Payload: []byte("ok")})
		}, []string{"-0", "Close 0"}, -1},
		"the call is canceled": {func(b *box, f *outbox.Flow) {
			b.Cancel(f, outbox.Ended)
			b.put(f, piece(4*kib, kib, kib)) // its sender has not heard of it
			b.put(f, outbox.Message{Type: message.CloseType, Abort: codec.ErrCanceled})
		}, []string{"-0", "Close 0"}, -1},
		"the peer closes": {func(b *box, f *outbox.Flow) { b.Finish(f, outbox.Ended) }, nil, -1},
	} {
		b, r := newDivided(t, 64*kib)
		f, _ := b.open(0)
		r.all(b.Outbox)
		b.put(f, piece(4*kib, 0, kib))
		r.all(b.Outbox)
		c.do(b, f)
		story := r.all(b.Outbox)
		require.Len(t, story, len(c.want), name)
		for i, want := range c.want {
			require.Contains(t, story[i], want, name)
		}
		require.Zero(t, b.Underway(), name)
		require.Empty(t, b.drops, "%s: the sender has an error", name)
		if c.sent >= 0 {
			require.Equal(t, c.sent, b.departed(f, r), name)
		}
	}
}

func TestPieces_LastOneDropped(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	f := b.fill()
	b.put(f, piece(2*kib, 0, kib))
	b.put(f, piece(2*kib, kib, kib)) // its sender has returned
	b.Cancel(f, outbox.Ended)
	require.Equal(t, []outbox.Drop{{Reason: outbox.Ended}}, b.drops, "once for the Block")
	r.all(b.Outbox)
}

func TestPieces_NeverExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, r := newDivided(t, 64*kib)
		f := b.fill()
		m := piece(2*kib, 0, kib)
		m.Expires = time.Now().Add(time.Second)
		b.put(f, m)
		b.put(f, piece(2*kib, kib, kib))
		fakeclock.Sleep(time.Minute)
		r.message = func(frame []byte) {
			if m, err := message.ParseBlock(frame); err == nil && len(m.Payload) == 2*kib {
				require.EqualValues(t, 1, m.Meta.TTL, "the receiver drops the Block")
			}
		}
		require.Contains(t, r.all(b.Outbox), "Block 0 LLLLLLLL")
	})
}

func TestPieces_CarryGap(t *testing.T) {
	b, r := newDivided(t, 64*kib)
	f := b.fill()
	b.send(f, outbox.Message{Payload: []byte("lossy"), Loss: 127})
	b.Thin()
	b.put(f, piece(2*kib, 0, kib))
	require.True(t, b.Judge(f, &outbox.Message{Type: message.BlockType, Loss: 127}))
	b.put(f, piece(2*kib, kib, kib))
	b.put(f, end)
	var skipped []uint64
	r.message = func(frame []byte) {
		if m, err := message.ParseBlock(frame); err == nil {
			skipped = append(skipped, m.Meta.Skipped)
		}
	}
	r.all(b.Outbox)
	require.Equal(t, []uint64{0, 1, 1}, skipped)
}
