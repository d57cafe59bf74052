package outbox_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
)

func TestEnter_FirstWritesForAll(t *testing.T) {
	b := newBox(t)
	for range 3 {
		var opened []*opening
		for i := range 4 {
			_, o, write := b.enter(0, "")
			require.Equal(t, i == 0, write)
			require.Empty(t, o.ids, "not before it is taken")
			opened = append(opened, o)
		}
		batch, frames := b.take()
		require.Len(t, frames, 4)
		for i, o := range opened {
			require.Len(t, o.ids, 1)
			require.Equal(t, opened[0].ids[0]+2*uint64(i), o.ids[0], "in the order in which they came")
		}
		b.Written(batch)
		require.Empty(t, b.drain())
	}
	require.Equal(t, 12, b.messages)
}

func TestEnter_BeforeLaterPut(t *testing.T) {
	b := newBox(t)
	first, _ := b.open(0)
	b.drain()
	_, o, _ := b.enter(0, "")
	b.block(first, []byte("later"))
	require.Len(t, o.ids, 1, "its turn came before the Block's")
	require.Equal(t, []string{"Open 2", "Block 0 later"}, b.drain())
}

func TestEnter_UrgentOvertakes(t *testing.T) {
	b := newBox(t)
	var normal []*opening
	for range 3 {
		_, o, _ := b.enter(0, string(make([]byte, 60<<10)))
		normal = append(normal, o)
	}
	_, urgent, _ := b.enter(1, "")
	b.drain()
	require.Equal(t, []uint64{0}, normal[0].ids, "it had the batch")
	require.Equal(t, []uint64{2}, urgent.ids)
	require.Equal(t, []uint64{4}, normal[1].ids)
	require.Equal(t, []uint64{6}, normal[2].ids)
}

func TestEnter_TooLarge(t *testing.T) {
	b := newBox(t)
	f := outbox.NewFlow(0)
	write, err := b.Enter(&f, &outbox.Message{Type: message.OpenType, Payload: make([]byte, 1<<20), Departer: new(opening)})
	var large *outbox.TooLargeError
	require.ErrorAs(t, err, &large)
	require.False(t, write)
	require.Empty(t, b.drain())
}

func TestEnter_AfterClose(t *testing.T) {
	b := newBox(t)
	_, before, _ := b.enter(0, "before")
	require.False(t, b.Close(nil), "the caller of Enter is to write")
	_, after, write := b.enter(0, "after")
	require.False(t, write)
	for _, o := range []*opening{before, after} {
		require.Equal(t, 1, o.discarded)
		require.Empty(t, o.ids)
	}
	require.Equal(t, 2, b.messages, "no longer counted")
	require.Equal(t, []outbox.Drop{{Open: true}, {Open: true}}, b.drops)
}

func TestEnter_WithoutWireIsCancelable(t *testing.T) {
	b := newBox(t)
	b.Keep(func() uint64 { return 0 }, 1<<20)
	_, early, _ := b.enter(0, "")
	require.False(t, b.Halt(), "the caller of Enter is to write")
	f, late, write := b.enter(1, "")
	require.False(t, write)
	_, kept, _ := b.enter(0, "")
	departed, unsent := b.Cancel(f, outbox.Ended)
	require.False(t, departed)
	require.True(t, unsent)
	batch, end := b.Take()
	require.Nil(t, batch)
	require.Equal(t, outbox.Halted, end)

	_, err := b.Resume(0)
	require.NoError(t, err)
	b.Resent()
	require.Equal(t, []string{"Open 0", "Open 2"}, b.drain())
	require.Equal(t, []uint64{0}, early.ids)
	require.Equal(t, []uint64{2}, kept.ids)
	require.Empty(t, late.ids)
	require.Zero(t, late.discarded, "Cancel has reported")
}

func TestCancel_OfEnteredOpen(t *testing.T) {
	b := newBox(t)
	f, o, _ := b.enter(0, "")
	departed, unsent := b.Cancel(f, outbox.Ended)
	require.True(t, departed, "it had joined the batch")
	require.False(t, unsent)
	require.Len(t, o.ids, 1)
}

func TestFlush_CoversEntered(t *testing.T) {
	b := newBox(t)
	b.enter(0, "")
	done := b.Flush()
	select {
	case <-done:
		t.Fatal("nothing was written yet")
	default:
	}
	b.drain()
	<-done
}

// oneEnd counts the calls for its Open.
type oneEnd struct{ departed, discarded atomic.Int32 }

func (o *oneEnd) Depart(uint64)               { o.departed.Add(1) }
func (o *oneEnd) Discard(outbox.Reason, bool) { o.discarded.Add(1) }

func TestEnter_OneOutcome(t *testing.T) {
	const callers, each = 8, 2_000
	var gone atomic.Int64
	var lasts atomic.Int32
	o := outbox.New(0, 1<<20, 0, 0, func(messages, _ int) { gone.Add(int64(messages)) }, nil)
	write := func() {
		batch, end := o.Take()
		for ; batch != nil; batch, end = o.Take() {
			o.Written(batch)
		}
		if end == outbox.Last {
			lasts.Add(1)
		}
	}
	ends := make([]oneEnd, callers*each)
	var half, wg sync.WaitGroup
	half.Add(callers)
	for c := range callers {
		wg.Go(func() {
			for i := range each {
				if i == each/2 {
					half.Done()
				}
				f := outbox.NewFlow(0)
				mine, err := o.Enter(&f, &outbox.Message{Type: message.OpenType, Departer: &ends[c*each+i]})
				if err != nil {
					t.Error(err)
				}
				if mine {
					write()
				}
			}
		})
	}
	half.Wait()
	if o.Close(message.Drain{}) {
		write()
	}
	wg.Wait()
	var departed, discarded int
	for i := range ends {
		d, n := int(ends[i].departed.Load()), int(ends[i].discarded.Load())
		require.Equal(t, 1, d+n)
		departed += d
		discarded += n
	}
	require.GreaterOrEqual(t, departed, callers)
	require.Equal(t, int64(callers*each), gone.Load())
	require.EqualValues(t, 1, lasts.Load(), "one writer learns of the end")
	t.Log(departed, "departed,", discarded, "were discarded")
}

func TestEndOpens_RejectsLater(t *testing.T) {
	b := newBox(t)
	_, _, _ = b.enter(0, "before")
	b.EndOpens()
	f, o, _ := b.enter(0, "after")
	require.Equal(t, []string{"Open 0"}, b.drain())
	require.Equal(t, 1, o.discarded)
	require.True(t, f.Released())
	g := outbox.NewFlow(0)
	_, err := b.Put(&g, &outbox.Message{Type: message.OpenType, Departer: o})
	require.ErrorIs(t, err, outbox.ErrNoOpens)
	accepted := outbox.AcceptedFlow(0, 1)
	b.put(&accepted, outbox.Message{Type: message.CloseType})
	require.Equal(t, []string{"Close 1"}, b.drain(), "other messages are accepted")
}
