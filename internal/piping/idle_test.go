package piping_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/piping"
)

func TestIdle_ReturnsSpareCredit(t *testing.T) {
	const stays = 4 * early
	handedBack := fmt.Sprint("skip ", stays)
	for name, c := range map[string]struct {
		limit uint64
		do    func(end *piping.End)
		again bool
		skip  string
	}{
		"more than stays":                  {10 * early, func(*piping.End) {}, true, handedBack},
		"as much as stays":                 {stays, func(*piping.End) {}, true, ""},
		"more than is never kept from it":  {early + 1, func(*piping.End) {}, true, ""},
		"as much as is never kept from it": {early, func(*piping.End) {}, false, ""},
		"without windows":                  {piping.Unlimited, func(*piping.End) {}, false, ""},
		"in use meanwhile": {10 * early, func(e *piping.End) {
			e.Send(background, piping.Outgoing{Payload: []byte("x")})
		}, true, ""},
		"when the direction has ended": {10 * early, func(e *piping.End) { e.CloseSend() }, false, ""},
		"when the peer wants no more":  {10 * early, func(e *piping.End) { e.StopArrived() }, false, ""},
		"when the call is over":        {10 * early, func(e *piping.End) { e.CloseArrived(nil, nil) }, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, end, port := newPipe(piping.Config{SendLimit: c.limit})
			seen, again := end.Idle(piping.Unlimited, stays)
			require.Zero(t, seen)
			require.Equal(t, c.limit != piping.Unlimited && c.limit > early, again, "it may be in use")
			c.do(end)
			_, again = end.Idle(seen, stays)
			require.Equal(t, c.again, again)
			if c.skip != "" {
				require.Equal(t, []string{c.skip}, port.sent)
			} else {
				require.NotContains(t, port.sent, handedBack)
			}
		})
	}
}

func TestIdle_PutsOneSkipAtATime(t *testing.T) {
	_, end, port := newPipe(piping.Config{SendLimit: 10 * early})
	for range 5 {
		_, again := end.Idle(0, early)
		require.True(t, again, "the Skip may be refused when it departs")
	}
	require.Len(t, port.sent, 1)
	_, ok := end.Skipping(7, early)
	require.False(t, ok, "a Block has departed that was counted as sent no more")
	end.Idle(0, early)
	require.Len(t, port.sent, 2)
	_, ok = end.Skipping(0, early)
	require.True(t, ok)
	_, again := end.Idle(9*early, early)
	require.False(t, again, "nothing is left to be handed back")
}

// TestWatch_IsCalledWhereverCreditComesFrom has a pipe whose credit is used up when it is looked
// at, so that it is not looked at again.
func TestWatch_IsCalledWhereverCreditComesFrom(t *testing.T) {
	block := make([]byte, 9*early-overhead)
	for name, c := range map[string]struct {
		before, then func(end *piping.End, port *port)
	}{
		"a Block is dropped": {
			func(end *piping.End, _ *port) { end.Send(background, piping.Outgoing{Payload: block}) },
			func(end *piping.End, _ *port) { end.Dropped(len(block)) },
		},
		"a Block is refused": {
			func(*piping.End, *port) {},
			func(end *piping.End, p *port) {
				p.refuse = errors.New("no")
				require.Error(t, end.Send(background, piping.Outgoing{Payload: block}))
			},
		},
		"the peer grants more": {
			func(end *piping.End, _ *port) { end.Send(background, piping.Outgoing{Payload: block}) },
			func(end *piping.End, _ *port) { end.CreditArrived(20 * early) },
		},
		"a Block in pieces is sent": {
			func(end *piping.End, _ *port) {
				go end.Send(background, piping.Outgoing{Payload: make([]byte, 19*early-overhead)})
				synctest.Wait()
				_, again := end.Idle(0, early)
				require.False(t, again, "the Block is under way")
			},
			func(end *piping.End, _ *port) { end.CreditArrived(21 * early); synctest.Wait() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, end, port := newPipe(piping.Config{SendLimit: 10 * early})
				c.before(end, port)
				require.Zero(t, port.watched)
				c.then(end, port)
				require.Positive(t, port.watched)
			})
		})
	}
}

func TestSkip_NotInUse(t *testing.T) {
	p, end, _ := newPipe(piping.Config{SendLimit: 10 * early})
	require.NoError(t, p.Send(background, make([]byte, 10)))
	const sent = 10 + overhead
	_, ok := end.Skipping(0, early)
	require.False(t, ok, "a Block is on its way")
	total, ok := end.Skipping(sent, early)
	require.True(t, ok)
	require.EqualValues(t, 9*early, total)
	_, ok = end.Skipping(uint32(total), early)
	require.False(t, ok, "nothing is left to be handed back")
	_, err := p.Post(make([]byte, early))
	require.ErrorIs(t, err, codec.ErrOverloaded, "the returned credit is gone")
	require.NoError(t, p.Send(background, make([]byte, early-overhead)), "and what stays is not")
}

func TestSkip_FreesRoom(t *testing.T) {
	room := flow.NewBudget(&flow.Plan{Window: early, Workers: 1, Room: 8 << 20, Elastic: 1 << 20})
	p, end, _ := running(t, room)
	granted := end.Account().Granted
	require.EqualValues(t, 64<<10, granted)
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(100)))
	require.Equal(t, 64<<10, loadOf(room).Windows)

	require.True(t, end.SkipArrived(granted-2*early))
	require.Equal(t, 2*early+100+overhead, loadOf(room).Windows, "the credit that stays, and the Blocks in the inbox")
	_, err := p.Recv(background)
	require.NoError(t, err)
	require.Equal(t, granted, end.Account().Granted, "a limit is never lowered")
	require.EqualValues(t, granted-2*early, end.Account().Taken)
	require.Equal(t, piping.Accepted, end.BlockArrived(sized(2*early-overhead)), "what stays may come")
	require.Equal(t, piping.Overrun, end.BlockArrived(sized(0)), "and nothing more")
}

func TestSkip_BeyondCredit(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *piping.End)
		sent uint64
		ok   bool
	}{
		"less than has come":         {func(*piping.End) {}, overhead + 99, false},
		"the received Blocks":        {func(*piping.End) {}, overhead + 100, true},
		"all that was granted":       {func(*piping.End) {}, 64 << 10, true},
		"more than was granted":      {func(*piping.End) {}, 64<<10 + 1, false},
		"behind the end":             {func(e *piping.End) { e.EndArrived(0) }, 0, true},
		"when the call is over":      {func(e *piping.End) { e.CloseArrived(nil, nil) }, 0, true},
		"behind a Stop, too much":    {func(e *piping.End) { e.Stop() }, 1 << 40, false},
		"behind a Stop":              {func(e *piping.End) { e.Stop() }, 64 << 10, true},
		"behind a Stop, and too old": {func(e *piping.End) { e.Stop() }, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			room := flow.NewBudget(&flow.Plan{Window: early, Workers: 1, Room: 8 << 20, Elastic: 1 << 20})
			_, end, _ := running(t, room)
			require.Equal(t, piping.Accepted, end.BlockArrived(sized(100)))
			c.do(end)
			require.Equal(t, c.ok, end.SkipArrived(c.sent))
		})
	}
}

func TestSkip_NotInsideBlock(t *testing.T) {
	wide := plan
	wide.Elastic, wide.Room = 4<<10, 32<<10
	bubble(t, wide, func(t *testing.T, s *stream) {
		s.here.send(large)
		s.run()
		sent, again := s.here.end().Idle(piping.Unlimited, early)
		require.False(t, again)
		s.here.end().Idle(sent, early)
		s.run()
		require.Zero(t, s.here.skips)
		s.there.recv()
		s.run()
		s.finish()
	})
}
