package outbox_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestControls_OnlyNewestDeparts(t *testing.T) {
	b := newBox(t)
	for n := range uint64(3) {
		b.control(message.Pong{N: n})
		b.control(message.Ping{N: n})
		b.control(message.Credit{Opens: true, Limit: n})
	}
	require.ElementsMatch(t, []message.Control{
		message.Pong{N: 2}, message.Ping{N: 0}, message.Ping{N: 1}, message.Ping{N: 2}, message.Credit{Opens: true, Limit: 2},
	}, b.controls())
	require.Empty(t, b.controls(), "once")
	b.control(message.Pong{N: 3})
	require.Equal(t, []message.Control{message.Pong{N: 3}}, b.controls())
	require.Zero(t, b.messages, "they are not counted")
}

func TestPutControl_BecomesWriter(t *testing.T) {
	b := newBox(t)
	for _, put := range []func() (bool, error){
		func() (bool, error) { return b.PutControl(message.Pong{}) },
		func() (bool, error) { return b.PutControl(message.Ping{}) },
		func() (bool, error) { return b.PutControl(message.Credit{Opens: true}) },
		func() (bool, error) { return b.Announce(new(announcer)) },
	} {
		write, err := put()
		require.NoError(t, err)
		require.True(t, write)
		write, err = put()
		require.NoError(t, err)
		require.False(t, write)
		require.NotEmpty(t, b.controls())
	}
}

func TestAnnounce_AskedOnDeparture(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	b.block(f, []byte("waits"))
	one, two := &announcer{pipe: 2}, &announcer{pipe: 4}
	for _, a := range []*announcer{one, two} {
		_, err := b.Announce(a)
		require.NoError(t, err)
	}
	require.Zero(t, one.asked+two.asked)
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "message.Credit", "message.Credit", "Block 0 waits"}, b.drain())
	require.EqualValues(t, 1, one.asked, "once for each announcement")
	require.EqualValues(t, 1, two.asked)
	_, err := b.Announce(one)
	require.NoError(t, err)
	require.Equal(t, []message.Control{message.Credit{Pipe: 2, Limit: 2}}, b.controls())
}

// nothing is an Announcer without Controls.
type nothing struct{}

func (nothing) Controls(func(message.Control)) {}

func TestAnnounce_NothingLeft(t *testing.T) {
	b := newBox(t)
	write, err := b.Announce(nothing{})
	require.NoError(t, err)
	require.True(t, write)
	batch, end := b.Take()
	require.Nil(t, batch)
	require.Equal(t, outbox.Idle, end)
}

func TestControls_NoneWithoutWire(t *testing.T) {
	b := newBox(t)
	b.Keep(func() uint64 { return 0 }, 1<<20)
	f, _ := b.open(0)
	b.drain()
	require.True(t, b.Halt())
	s := &skipper{wants: 2}
	for n := range uint64(1000) {
		b.control(message.Pong{N: n})
		b.control(message.Credit{Opens: true, Limit: n})
	}
	a := &announcer{pipe: 2}
	_, err := b.Announce(a)
	require.NoError(t, err)
	b.block(f, []byte("before"))
	b.skip(f, s, 0)
	batch, end := b.Take()
	require.Nil(t, batch)
	require.Equal(t, outbox.Halted, end)
	require.Zero(t, a.asked)
	require.Empty(t, s.sent)

	_, err = b.Resume(1)
	require.NoError(t, err)
	b.Resent()
	require.Equal(t, []message.Control{
		message.Pong{N: 999}, message.Credit{Opens: true, Limit: 999}, message.Credit{Pipe: 2, Limit: 1},
		message.Skip{Sent: 1<<40 + 100 + overhead + 6},
	}, b.controls())
}

func TestSkip_IgnoresDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBox(t)
		f := b.fill()
		s := &skipper{wants: 1}
		b.send(f, outbox.Message{Payload: []byte("late"), Expires: time.Now().Add(time.Second), Sender: s})
		b.send(f, outbox.Message{Payload: []byte("lossy"), Loss: 127, Sender: s})
		b.block(f, []byte("kept"))
		b.skip(f, s, 0)
		b.Thin()
		fakeclock.Sleep(time.Second)
		b.drain()
		require.Equal(t, []uint32{63<<10 - 10 + overhead + 4 + overhead, 0}, s.sent)
		require.Equal(t, []int{5, 4}, s.dropped, "its sender hears of each")
	})
}

func TestSkip_Vanishes(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	s := new(skipper)
	b.skip(f, s, 0)
	require.Zero(t, b.messages)
	b.block(f, []byte("before"))
	b.skip(f, s, 0)
	b.block(f, []byte("behind"))
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "Block 0 before", "Block 0 behind"}, b.drain())
	require.Len(t, s.sent, 4)
	require.Equal(t, 6, b.messages, "its count is given back")

	before := b.bytes
	b.skip(f, s, 0)
	require.Equal(t, 7, b.messages, "at once, where nothing waits")
	require.Equal(t, before+100, b.bytes)
}

func TestSkip_VanishesAlone(t *testing.T) {
	b := newBox(t)
	f, _ := b.open(0)
	b.drain()
	s := new(skipper)
	write, err := b.Put(f, &outbox.Message{Type: message.ControlType, Control: outbox.Skip, Sender: s})
	require.NoError(t, err)
	require.True(t, write)
	batch, end := b.Take()
	require.Nil(t, batch)
	require.Equal(t, outbox.Idle, end)
}

func TestSkip_DroppedWithPipe(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	s := &skipper{wants: 9}
	b.block(f, []byte("waits"))
	b.skip(f, s, 0)
	b.Cancel(f, outbox.Ended)
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx"}, b.drain())
	require.Empty(t, s.sent)
	require.Empty(t, s.dropped, "there is no caller any more")
	require.Equal(t, 4, b.messages)
}

func TestClose_DropsControls(t *testing.T) {
	b := newBox(t)
	b.control(message.Pong{N: 1})
	a := new(announcer)
	_, err := b.Announce(a)
	require.NoError(t, err)
	b.Close(message.SessionClose{})
	require.Equal(t, []message.Control{message.SessionClose{}}, b.controls())
	require.Zero(t, a.asked)
	_, err = b.Announce(a)
	require.ErrorIs(t, err, outbox.ErrClosed)
}

func TestJudge_DropsByLossRate(t *testing.T) {
	b := newBox(t)
	f := outbox.AcceptedFlow(0, 1)
	dropped := 0
	for i := range 127 {
		m := outbox.Message{Type: message.BlockType, Loss: 64, Marker: i}
		if b.Judge(&f, &m) {
			dropped++
		}
		require.Zero(t, m.Loss, "it is judged once")
		require.False(t, b.Judge(&f, &m))
	}
	require.Equal(t, 64, dropped)
	require.Len(t, b.drops, 64)
	require.Equal(t, outbox.Thinned, b.drops[0].Reason)
	require.Zero(t, b.messages, "it was never counted")
	b.block(&f, []byte("next"))
	require.EqualValues(t, 64, b.blocks(1)[0].Meta.Skipped, "the next one reports it")
}

func TestJudge_Spares(t *testing.T) {
	b := newBox(t)
	f := outbox.AcceptedFlow(0, 1)
	for _, m := range []outbox.Message{{Type: message.BlockType}, {Type: message.BlockType, End: true, Loss: 127}} {
		require.False(t, b.Judge(&f, &m))
	}
	lossy := outbox.Message{Type: message.BlockType, Loss: 127}
	_, err := b.Put(&f, &outbox.Message{Type: message.BlockType, End: true})
	require.NoError(t, err)
	require.False(t, b.Judge(&f, &lossy), "its direction has ended: the sender learns that")
	b.Close(nil)
	other := outbox.AcceptedFlow(0, 3)
	require.False(t, b.Judge(&other, &lossy))
	require.Empty(t, b.drops)
}

func TestJudge_SharesTheDebt(t *testing.T) {
	for _, rate := range []uint8{1, 64, 126} {
		b := newBox(t)
		f := outbox.AcceptedFlow(0, 1)
		const blocks = 10_000
		for i := range blocks {
			m := outbox.Message{Type: message.BlockType, Loss: rate, Pressed: true}
			if i%2 == 0 {
				b.Judge(&f, &m)
			} else {
				b.send(&f, m)
				b.drainQuietly()
			}
			require.LessOrEqual(t, len(b.drops)*message.MaxLoss, (i+1)*int(rate))
		}
		require.Equal(t, blocks*int(rate)/message.MaxLoss, len(b.drops), fmt.Sprint(rate))
	}
}

// If a call is rejected because of a Drain, its peer has to receive the Drain first. Otherwise it
// would take the rejection for one of that call alone.
func TestDrain_DepartsFirst(t *testing.T) {
	b := newBox(t)
	b.control(message.Ping{N: 1})
	f := outbox.AcceptedFlow(0, 1)
	b.control(message.Drain{None: true})
	_, err := b.Put(&f, &outbox.Message{Type: message.CloseType, Abort: codec.ErrUnavailable})
	require.NoError(t, err)
	require.Equal(t, []string{"message.Drain", "Close 1", "message.Ping"}, b.drain())
}

func TestPutAhead_WaitsForNext(t *testing.T) {
	b := newBox(t)
	require.NoError(t, b.PutAhead(message.Drain{None: true}))
	write, err := b.PutControl(message.Ping{N: 1})
	require.NoError(t, err)
	require.True(t, write, "there was no writer before")
	require.Equal(t, []string{"message.Drain", "message.Ping"}, b.drain())
	b.Close(nil)
	require.Equal(t, outbox.ErrClosed, b.PutAhead(message.Drain{None: true}))
}

func TestSkip_RaisesDepartedCost(t *testing.T) {
	b := newBox(t)
	f := b.fill()
	sent := uint32(63<<10 - 10 + overhead)
	s := &skipper{wants: 4}
	b.skip(f, s, 4096)
	b.block(f, []byte("123"))
	b.block(f, make([]byte, 70<<10))
	b.skip(f, s, 4096)
	b.block(f, nil)
	b.skip(f, s, 0)
	require.Empty(t, s.sent, "they wait in the order of their pipe")
	zeros := "Block 0 " + string(make([]byte, 8))
	require.Equal(t, []string{"Open 0", "Block 0 xxxxxxxx", "message.Skip", "Block 0 123", zeros, "message.Skip", "Block 0 ", "message.Skip"}, b.drain())
	second := sent + 100 + 3 + overhead + 70<<10 + overhead
	require.Equal(t, []uint32{sent, 4096, second, 4096, second + 100 + overhead, 0}, s.sent, "the low bits of the departed cost")
	require.Equal(t, 8, b.messages, "Skips are counted as the Blocks are")
}
