package piping_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
)

func TestWindow_GrowsWithReader(t *testing.T) {
	const block = 1024 - overhead
	room := flow.NewBudget(&flow.Plan{Window: 8 << 10, Workers: 1, Room: 8 << 20, Elastic: 1 << 20, Large: 1 << 20})
	p, end, port := newPipe(piping.Config{Granted: early, Terms: &piping.Terms{Budget: room, Usual: 16 << 10}})
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(block)), "early")
	end.BeginHandler(flow.Window{Base: 8 << 10, Class: flow.Served})
	require.Equal(t, []message.Control{message.Credit{Limit: 1<<10 + 6<<10 + 511}}, told(end), "whole Blocks, and less than comes by itself")
	require.Empty(t, told(end), "once")
	for range 6 {
		require.Equal(t, piping.Accepted, end.BlockArrived(sized(block)))
	}
	require.Equal(t, piping.Overrun, end.BlockArrived(sized(block)), "the window is used up")
	for range 3 {
		p.Recv(background)
	}
	require.Empty(t, told(end), "less than half is owed")
	for range 3 {
		p.Recv(background)
	}
	require.Equal(t, []message.Control{message.Credit{Limit: 7<<10 + 4<<10 + 511}}, told(end), "half, without growth: the reader lags")
	p.Recv(background)
	require.Equal(t, []message.Control{message.Credit{Limit: 7<<10 + 15<<10 + 511}}, told(end), "the reader has emptied a window that was used whole: it doubles")
	require.Equal(t, 3, port.news, "each time it was announced once")
}

// TestWindow_GrowsWithExtraCredit has a window of 64 KiB. Credits at its half never let the peer
// use it up.
func TestWindow_GrowsWithExtraCredit(t *testing.T) {
	room := flow.NewBudget(&flow.Plan{Window: early, Workers: 1, Room: 64 << 20, Elastic: 8 << 20})
	p, end, _ := running(t, room)
	require.Equal(t, 64<<10, loadOf(room).Windows)
	for range 40 {
		require.Equal(t, piping.Accepted, end.BlockArrived(sized(4<<10-overhead)))
		p.Recv(background)
	}
	require.GreaterOrEqual(t, loadOf(room).Windows, 128<<10)
}

func TestCredit_AnnouncedOnce(t *testing.T) {
	const block = 1024 - overhead
	room := flow.NewBudget(&flow.Plan{Window: 4 << 10, Workers: 1})
	p, end, port := running(t, room)
	for total := uint64(4 << 10); total < 12<<10; total += 1 << 10 {
		require.Equal(t, piping.Accepted, end.BlockArrived(sized(block)))
		p.Recv(background)
	}
	require.Equal(t, 1, port.news)
	require.Equal(t, []message.Control{message.Credit{Limit: 8<<10 + 3<<10 + 511}}, told(end), "whole Blocks, and less than comes by itself")
}

func TestWindow_ShrinksToGuarantee(t *testing.T) {
	const block = 1024 - overhead
	room := flow.NewBudget(&flow.Plan{Window: 2 << 10, Workers: 1, Callers: 1, Room: 384 << 10, Opens: 332 << 10, Elastic: 48 << 10})
	p, end, _ := running(t, room)
	require.Equal(t, []message.Control{message.Credit{Limit: 8 << 10}}, told(end), "an eighth of the elastic room more than is guaranteed")
	var others flow.Window
	flow.Grant(room.Grow(&others, 42<<10, 42<<10)) // all that is left
	room.Resize(336 << 10)
	for range 8 {
		require.Equal(t, piping.Accepted, end.BlockArrived(sized(block)))
	}
	for range 5 {
		p.Recv(background)
	}
	require.Empty(t, told(end), "three are left, and more than is guaranteed is granted already")
	for range 3 {
		p.Recv(background)
	}
	granted := told(end)[0].(message.Credit).Limit
	require.GreaterOrEqual(t, granted, uint64(10<<10), "never less than is guaranteed")
	require.Less(t, granted, uint64(11<<10), "and nothing besides while there is less than no elastic room")
	room.End(&others)
	room.Resize(384 << 10)
	for range 2 {
		require.Equal(t, piping.Accepted, end.BlockArrived(sized(block)))
		p.Recv(background)
	}
	require.Greater(t, told(end)[0].(message.Credit).Limit, uint64(12<<10), "and more again when there is room")
}

func TestWindow_None(t *testing.T) {
	p, end, port := newPipe(piping.Config{})
	for range 1000 {
		require.Equal(t, piping.Accepted, end.BlockArrived(sized(1024)))
	}
	for range 1000 {
		p.Recv(background)
	}
	// from a peer with a window of its own, on a pipe without one: no limit appears
	end.CreditArrived(5)
	require.NoError(t, p.Send(background, make([]byte, 1024)))
	require.NoError(t, p.Send(background, make([]byte, 1024)))
	require.Empty(t, told(end))
	require.Zero(t, port.news)
}

// TestWindow_GrowsWithPath makes credit fall due while Blocks wait in the inbox, as happens when
// several small Blocks arrive together.
func TestWindow_GrowsWithPath(t *testing.T) {
	const block = 1024 - overhead
	room := flow.NewBudget(&flow.Plan{Window: 8 << 10, Workers: 1, Room: 8 << 20, Elastic: 1 << 20, Large: 1 << 20})
	terms := &piping.Terms{Budget: room, Usual: 8 << 10, Most: 1 << 20}
	terms.Holds.Store(64 << 10)
	p, end, _ := newPipe(piping.Config{Granted: early, Terms: terms})
	end.BeginHandler(flow.Window{Base: 8 << 10, Class: flow.Served})
	told(end)
	for range 6 {
		require.Equal(t, piping.Accepted, end.BlockArrived(sized(block)))
	}
	for range 5 {
		p.Recv(background)
	}
	require.Less(t, told(end)[0].(message.Credit).Limit, uint64(14<<10), "the reader lags")
	p.Recv(background)
	require.Equal(t, []message.Control{message.Credit{Limit: 6<<10 + 15<<10 + 511}}, told(end), "it does not: the window doubles")
}
