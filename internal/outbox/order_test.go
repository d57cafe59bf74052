package outbox_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/priority"
)

var (
	end     = outbox.Message{Type: message.BlockType, End: true}
	closes  = outbox.Message{Type: message.CloseType}
	stops   = outbox.Message{Type: message.ControlType, Control: outbox.Stop}
	another = outbox.Message{Type: message.BlockType, Payload: []byte("another")}
)

func TestReports_WithoutLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o *outbox.Outbox
		var told []string
		tell := func(what string) {
			o.Waiting() // needs the lock
			told = append(told, what)
		}
		o = outbox.New(0, 1<<20, 0, 0,
			func(int, int) { tell("written") },
			func([]outbox.Drop) { tell("dropped") })
		f := outbox.AcceptedFlow(0, 1)
		_, err := o.Put(&f, &outbox.Message{
			Type: message.BlockType, Expires: time.Now(), Sender: toldSender(func() { tell("sender") }),
		})
		require.NoError(t, err)
		require.Equal(t, []string{"written", "sender", "dropped"}, told)
	})
}

// toldSender is a Sender that is called for each dropped Block.
type toldSender func()

func (toldSender) Skipping(uint32, uint64) (total uint64, ok bool) { return 0, false }
func (s toldSender) Dropped(int)                                   { s() }

func TestDepart_BeforeTake(t *testing.T) {
	b := newBox(t)
	b.fill()
	_, put := b.open(0)
	_, entered, _ := b.enter(0, "")
	for batch, frames := b.take(); batch != nil; batch, frames = b.take() {
		for _, frame := range frames {
			switch frame {
			case "Open 2":
				require.Equal(t, []uint64{2}, put.ids)
			case "Open 4":
				require.Equal(t, []uint64{4}, entered.ids)
			}
		}
		b.Written(batch)
	}
	require.Len(t, put.ids, 1)
	require.Len(t, entered.ids, 1)
}

func TestOpen_PrecedesEndAndClose(t *testing.T) {
	b := newBox(t)
	b.fill()
	f, o := b.open(0)
	b.block(f, []byte("first"))
	b.put(f, end)
	b.refuses(f, another)
	b.put(f, stops)
	b.put(f, closes)
	for _, m := range []outbox.Message{another, end, stops, closes} {
		b.refuses(f, m)
	}
	require.Empty(t, o.ids, "they all wait")
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "Open 2", "Block 2 first", "Block 2 ", "message.Stop", "Close 2"}, b.drain())
	b.refuses(f, closes)
}

func TestOpen_Once(t *testing.T) {
	b := newBox(t)
	f, _ := b.open(0)
	b.refuses(f, outbox.Message{Type: message.OpenType, Departer: new(opening)})
}

func TestCancel_DropsOpenAndClose(t *testing.T) {
	b := newBox(t)
	b.fill()
	f, o := b.open(0)
	b.put(f, closes)
	departed, unsent := b.Cancel(f, outbox.Ended)
	require.False(t, departed)
	require.True(t, unsent)
	departed, unsent = b.Cancel(f, outbox.Ended)
	require.False(t, departed)
	require.False(t, unsent, "which is said once")
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx"}, b.drain())
	require.Empty(t, o.ids)
}

func TestCancel_AfterClose(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.block(f, []byte("waits"))
	b.put(f, closes)
	departed, unsent := b.Cancel(f, outbox.Ended)
	require.True(t, departed)
	require.False(t, unsent)
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "Block 0 waits", "Close 0"}, b.drain())
}

func TestCancel_BeforeOpen(t *testing.T) {
	b := newBox(t)
	f := outbox.NewFlow(0)
	departed, unsent := b.Cancel(&f, outbox.Ended)
	require.False(t, departed)
	require.False(t, unsent, "nothing was put")
	b.refuses(&f, outbox.Message{Type: message.OpenType, Departer: new(opening)})
	o := new(opening)
	_, err := b.Enter(&f, &outbox.Message{Type: message.OpenType, Departer: o})
	require.NoError(t, err)
	require.Empty(t, b.drain())
	require.Empty(t, o.ids)
	require.Zero(t, o.discarded, "Cancel has reported")
	require.Equal(t, 1, b.messages, "and it counts no longer")
}

func TestFinish_EndsPipe(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.block(f, []byte("waits"))
	b.Finish(f, outbox.NoFunction)
	require.Equal(t, []outbox.Drop{{Reason: outbox.NoFunction}}, b.drops)
	for _, m := range []outbox.Message{another, end, stops, closes} {
		b.refuses(f, m)
	}
	departed, unsent := b.Cancel(f, outbox.Ended)
	require.True(t, departed, "the peer knows of it")
	require.False(t, unsent)
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx"}, b.drain())
}

func TestEnter_DroppedEndsPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		f, o := outbox.NewFlow(0), new(opening)
		_, err := b.Enter(&f, &outbox.Message{Type: message.OpenType, Departer: o, Expires: time.Now()})
		require.NoError(t, err)
		b.refuses(&f, another)
		require.Equal(t, 1, o.discarded)
		require.Empty(t, b.drain())
	})
}

func TestExpiry_SparesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		f := b.fill()
		b.send(f, outbox.Message{Expires: time.Now()})
		b.send(f, outbox.Message{End: true, Expires: time.Now()})
		got := b.blocks(0)
		last := got[len(got)-1]
		require.True(t, last.End)
		require.EqualValues(t, 1, last.Meta.Skipped)
		require.Zero(t, last.Meta.TTL)
	})
}

func TestGap_NotByControl(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.send(f, outbox.Message{Loss: 127})
	b.skip(f, &skipper{wants: 1}, 0)
	b.send(f, outbox.Message{Loss: 127})
	b.put(f, stops)
	b.send(f, outbox.Message{Payload: []byte("next")})
	b.send(f, outbox.Message{Loss: 127})
	b.skip(f, &skipper{wants: 1}, 0)
	b.Thin()
	b.put(f, end)
	var skipped []uint64
	for _, m := range b.blocks(0)[1:] {
		skipped = append(skipped, m.Meta.Skipped)
	}
	require.Equal(t, []uint64{2, 1}, skipped)
}

func TestWriter_StaysWriter(t *testing.T) {
	b := newBox(t)
	b.Keep(func() uint64 { return 0 }, 1<<20)
	f, _ := b.open(0)
	b.drain()
	require.True(t, b.Halt(), "there was no writer")
	for range 2 {
		require.False(t, b.block(f, nil))
		_, e := b.Take()
		require.Equal(t, outbox.Halted, e)
	}
	require.False(t, b.Halt(), "the test is")
	_, err := b.Resume(1)
	require.NoError(t, err)
	b.Resent()
	require.False(t, b.block(f, nil), "and is it still")
	b.drain()

	require.True(t, b.Close(nil))
	_, e := b.Take()
	require.Equal(t, outbox.Last, e)
	_, _, write := b.enter(0, "")
	require.False(t, write, "one caller learns that nothing follows")
	require.False(t, b.Close(nil))
	require.False(t, b.Claim())
}

func TestRoom_NotClosedByClose(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	for range 2 {
		b.block(f, make([]byte, 32<<10))
	}
	room := b.Room(f)
	flushed := b.Flush()
	b.Close(nil)
	b.drainQuietly()
	require.False(t, isClosed(room), "there is none")
	require.False(t, isClosed(flushed), "it was not written")
}

func TestResume_FramesAreStable(t *testing.T) {
	b := newBox(t)
	b.Keep(func() uint64 { return 0 }, 1<<20)
	f, _ := b.open(0)
	b.drain()
	b.block(f, bytes.Repeat([]byte("kept"), 10<<10))
	b.drain()
	b.Halt()
	frames, err := b.Resume(1)
	require.NoError(t, err)
	want := bytes.Join(frames, nil)
	require.NotEmpty(t, want)
	require.True(t, b.Ack(2), "while it is being written again")
	for range 10 { // other code reuses the free memory
		other := newBox(t)
		other.fill()
		other.Take()
	}
	require.True(t, bytes.Equal(want, bytes.Join(frames, nil)))
	b.Resent()
}

func TestEnter_WithoutWireByPriority(t *testing.T) {
	b := newBox(t)
	b.Keep(func() uint64 { return 0 }, 1<<20)
	b.Halt()
	b.enter(priority.Min, "")
	_, urgent, _ := b.enter(priority.Max, "")
	_, err := b.Resume(0)
	require.NoError(t, err)
	b.Resent()
	b.drain()
	require.Equal(t, []uint64{0}, urgent.ids)
}
