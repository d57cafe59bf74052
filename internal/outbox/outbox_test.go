package outbox_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/race"
)

func TestTake_OneBatchInOrder(t *testing.T) {
	b := newBox(t)
	f, _ := b.open(0)
	b.block(f, []byte("a"))
	b.block(f, []byte("b"))
	batch, frames := b.take()
	require.Equal(t, []string{"Open 0", "Block 0 a", "Block 0 b"}, frames)
	require.Zero(t, b.messages, "given to the wire only when Written says so")
	b.Written(batch)
	require.Equal(t, 3, b.messages)
	require.Equal(t, 2, b.bytes)
}

func TestPut_OneWriter(t *testing.T) {
	b := newBox(t)
	f := outbox.AcceptedFlow(0, 1)
	require.True(t, b.block(&f, nil), "there is no writer yet")
	require.False(t, b.block(&f, nil), "the first one will")
	batch, _ := b.take()
	require.False(t, b.block(&f, nil), "the writer comes back for this one")
	b.Written(batch)
	b.drain()
	require.True(t, b.block(&f, nil), "the writer has gone")
}

func TestPriority_OvertakesQueue(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.block(f, []byte("slow"))
	urgent, _ := b.open(5)
	b.block(urgent, []byte("fast"))
	require.Equal(t, 3, b.Waiting())
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "Open 2", "Block 2 fast", "Block 0 slow"}, b.drain())
}

func TestPriority_BeforeLarge(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.block(f, bytes.Repeat([]byte("l"), 63<<10))
	b.open(5)
	batch, _ := b.take()
	b.Written(batch)
	batch, frames := b.take()
	require.Equal(t, []string{"Open 2"}, frames)
	b.Written(batch)

	_, err := b.PutControl(message.Ping{})
	require.NoError(t, err)
	_, frames = b.take()
	require.Equal(t, []string{"message.Ping", "Block 0 llllllll"}, frames, "Controls, of which there may always be some, do not hold up a large one")
}

func TestIDs_ByDeparture(t *testing.T) {
	b := newBox(t)
	b.fill()
	_, low := b.open(-1)
	_, high := b.open(1)
	require.Empty(t, low.ids, "an Open that waits has no id yet")
	b.drain()
	require.Equal(t, []uint64{2}, high.ids)
	require.Equal(t, []uint64{4}, low.ids)
}

func TestCancel_UnsentOpen(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	waiting, o := b.open(0)
	b.block(waiting, []byte("abc"))
	departed, unsent := b.Cancel(waiting, outbox.Ended)
	require.False(t, departed, "the peer will never know of it")
	require.True(t, unsent)
	require.Equal(t, 2, b.messages, "dropped messages no longer count")
	_, err := b.Put(waiting, &outbox.Message{Type: message.BlockType})
	require.ErrorIs(t, err, outbox.ErrEnded)
	b.block(f, []byte("after"))
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "Block 0 after"}, b.drain())
	require.Empty(t, o.ids)
}

func TestCancel_DropsBlocks(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.block(f, []byte("dropped"))
	departed, unsent := b.Cancel(f, outbox.Ended)
	require.True(t, departed, "the peer knows of it")
	require.False(t, unsent)
	_, err := b.Put(f, &outbox.Message{Type: message.CloseType, Abort: codec.ErrCanceled})
	require.NoError(t, err)
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "Close 0"}, b.drain())
}

func TestPut_AfterPipeEnd(t *testing.T) {
	b := newBox(t)
	f, _ := b.open(0)
	_, err := b.Put(f, &outbox.Message{Type: message.BlockType, End: true})
	require.NoError(t, err)
	_, err = b.Put(f, &outbox.Message{Type: message.BlockType})
	require.ErrorIs(t, err, outbox.ErrEnded, "a Block after the end of its direction")
	_, err = b.Put(f, &outbox.Message{Type: message.CloseType})
	require.NoError(t, err, "the Close still may")
	_, err = b.Put(f, &outbox.Message{Type: message.CloseType})
	require.ErrorIs(t, err, outbox.ErrEnded, "once")
}

func TestPut_TooLarge(t *testing.T) {
	b := &box{t: t, Outbox: outbox.New(0, 1000, 0, 0, func(int, int) {}, nil)}
	f, _ := b.open(0)
	_, err := b.Put(f, &outbox.Message{Type: message.BlockType, Payload: make([]byte, 1000)})
	var large *outbox.TooLargeError
	require.ErrorAs(t, err, &large)
	require.Equal(t, 1000-outbox.HeadSize, large.Limit)
	require.Equal(t, 1000, large.Size)
	b.block(f, []byte("small"))
	require.Equal(t, []string{"Open 0", "Block 0 small"}, b.drain())
}

func TestPut_CopiesPayload(t *testing.T) {
	for _, full := range []bool{false, true} {
		b := newBox(t)
		f, _ := b.open(0)
		if full {
			b.fill()
		}
		p := []byte("mine")
		b.block(f, p)
		copy(p, "over")
		require.Contains(t, b.drain(), "Block 0 mine", "queued: %v", full)
	}
}

func TestRoom_FullPipe(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	room := b.Room(f)
	require.Nil(t, room, "what departs does not count")
	for range 2 {
		b.block(f, make([]byte, 32<<10))
	}
	room = b.Room(f)
	require.NotNil(t, room)
	other, _ := b.open(0)
	none := b.Room(other)
	require.Nil(t, none, "other pipes need not wait")
	batch, _ := b.take()
	b.Written(batch)
	b.take()
	select {
	case <-room:
	default:
		t.Fatal("it has left")
	}
	none = b.Room(f)
	require.Nil(t, none)

	for range 3 { // the first of them departs
		b.block(f, make([]byte, 32<<10))
	}
	room = b.Room(f)
	require.NotNil(t, room)
	b.Cancel(f, outbox.Ended)
	<-room
}

func TestControls_PrecedeQueue(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.block(f, []byte("waits"))
	_, err := b.PutControl(message.Ping{})
	require.NoError(t, err)
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "message.Ping", "Block 0 waits"}, b.drain())
	require.Equal(t, 3, b.messages, "Controls are not counted")
}

func TestControls_LargeInBatch(t *testing.T) {
	o := outbox.New(0, 4<<20, 0, 0, func(int, int) {}, nil)
	f := outbox.NewFlow(0)
	_, err := o.Put(&f, &outbox.Message{Type: message.OpenType, Departer: new(opening), Payload: make([]byte, 2<<20)})
	require.NoError(t, err)
	_, err = o.PutControl(message.Pong{})
	require.NoError(t, err, "the batch is full of something else")
}

func TestControls_UnreadDoNotGrow(t *testing.T) {
	b := newBox(t)
	for n := range uint64(100_000) {
		_, err := b.PutControl(message.Pong{N: n})
		require.NoError(t, err)
		_, err = b.PutControl(message.Credit{Opens: true, Limit: n})
		require.NoError(t, err)
	}
	batch, frames := b.take()
	require.Equal(t, []string{"message.Pong", "message.Credit"}, frames)
	require.Less(t, len(batch), 30)
}

func TestControls_Flood(t *testing.T) {
	b := newBox(t)
	b.Keep(func() uint64 { return 0 }, 1<<20)
	for n := range uint64(1 << 20) {
		if _, err := b.PutControl(message.Credit{Opens: true, Limit: n}); err != nil {
			require.ErrorIs(t, err, outbox.ErrFlood)
			_, err = b.Announce(nil)
			require.ErrorIs(t, err, outbox.ErrFlood)
			return
		}
		batch, _ := b.Take()
		b.Written(batch)
	}
	t.Fatal("a million Controls were kept")
}

func TestPutMore_SmallBlocksWait(t *testing.T) {
	b := newBox(t)
	f, _ := b.open(0)
	b.drain()
	more := func() (write, later bool) {
		write, later, err := b.PutMore(f, &outbox.Message{Type: message.BlockType, Payload: make([]byte, 1<<10)})
		require.NoError(t, err)
		return write, later
	}

	write, later := more()
	require.False(t, write)
	require.True(t, later, "a writer has to come")
	write, later = more()
	require.False(t, write || later, "and will")
	require.True(t, b.Claim())
	_, frames := b.take()
	require.Len(t, frames, 2)
	write, later = more()
	require.False(t, write || later, "there is a writer")
	b.drain()
	require.False(t, b.Claim(), "there is nothing to write")

	n := 0
	for write = false; !write; n++ {
		write, later = more()
		require.Equal(t, n == 0, later)
	}
	require.Greater(t, n, 50, "a full batch is written by its last sender")
	b.drain()
	require.False(t, b.Claim())

	more()
	_, _, write = b.enter(0, "")
	require.True(t, write, "a call does not wait for them")
	require.False(t, b.Claim(), "there is a writer")
	b.drain()

	more()
	require.True(t, b.Close(nil))
	require.False(t, b.Claim())
	_, _, err := b.PutMore(f, &outbox.Message{Type: message.BlockType})
	require.ErrorIs(t, err, outbox.ErrClosed)
}

func TestClose_DiscardsQueue(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	_, o := b.open(0)
	require.False(t, b.Close(message.SessionClose{}), "a writer is there")
	require.Equal(t, 1, o.discarded)
	require.Equal(t, 1, b.messages, "discarded messages no longer count")
	_, err := b.Put(f, &outbox.Message{Type: message.BlockType})
	require.ErrorIs(t, err, outbox.ErrClosed)
	_, err = b.PutControl(message.Ping{})
	require.ErrorIs(t, err, outbox.ErrClosed)
	batch, frames := b.take()
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "message.SessionClose"}, frames)
	b.Written(batch)
	batch, last := b.Take()
	require.Nil(t, batch)
	require.Equal(t, outbox.Last, last)
}

func TestOutbox_IdleHoldsNoBuffer(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.drain()
	small := []byte("small")
	if race.Enabled {
		t.Skip("pools drop things at random")
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		b.block(f, small)
		b.drainQuietly()
	}), "a lone small message needs no new buffer")
}
