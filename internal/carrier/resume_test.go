package carrier_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
)

// away returns a Carrier that has sent two messages, of which the peer has received one, and has
// lost its Wire.
func away(t *testing.T) *rig {
	r := newRig(t, resumable).run()
	require.NoError(t, r.sends(1, carrier.Now))
	require.Len(t, <-r.wire.writes, 1)
	require.NoError(t, r.sends(3, carrier.Now))
	require.Len(t, <-r.wire.writes, 1)
	close(r.wire.in)
	r.wantStory("away")
	require.True(t, r.Away())
	return r
}

// over resumes over another Wire. The peer has received the given number of frames.
func (r *rig) over(received uint64, change func(*carrier.Comeback)) error {
	r.wire = newScripted()
	b := &carrier.Comeback{Wire: r.wire, Received: received, Confirm: func(uint64, int) error { return nil }}
	if change != nil {
		change(b)
	}
	return r.Resume(context.Background(), b)
}

func TestResume_ResendsFirst(t *testing.T) {
	r := away(t)
	require.NoError(t, r.sends(5, carrier.Now), "a message put meanwhile waits")
	settled := make(chan struct{})
	require.NoError(t, r.over(1, func(b *carrier.Comeback) {
		b.Confirm = func(received uint64, missing int) error {
			require.Zero(t, received)
			require.Positive(t, missing)
			return nil
		}
		b.Settled = func() { close(settled) }
	}))
	var ids []uint64
	for len(ids) < 2 {
		for _, f := range <-r.wire.writes {
			if m, err := message.ParseClose(f); err == nil {
				ids = append(ids, m.Pipe)
			}
		}
	}
	require.Equal(t, []uint64{3, 5}, ids)
	r.wire.says(open(7))
	<-settled
	r.wantStory("away", "back", "Open")
	require.Equal(t, carrier.Attached, r.State())
	require.EqualValues(t, 1, r.Received())
}

func TestResume_Refused(t *testing.T) {
	r := away(t)
	require.ErrorIs(t, r.over(1, func(b *carrier.Comeback) { b.Check = func() error { return errNo } }), errNo)
	require.ErrorIs(t, r.over(1, func(b *carrier.Comeback) { b.Confirm = func(uint64, int) error { return errNo } }), errNo)
	require.Error(t, r.over(100, nil), "more than were sent")
	require.Panics(t, func() {
		r.over(1, func(b *carrier.Comeback) { b.Confirm = func(uint64, int) error { panic("oops") } })
	})
	require.Equal(t, carrier.Away, r.State())
	require.NoError(t, r.over(1, nil))
	r.wantStory("away", "back")
}

func TestResume_TwiceAtOnce(t *testing.T) {
	r := away(t)
	claimed, goOn := make(chan struct{}), make(chan struct{})
	first := make(chan error)
	go func() {
		first <- r.Resume(context.Background(), &carrier.Comeback{Wire: newScripted(), Received: 1, Confirm: func(uint64, int) error {
			close(claimed)
			<-goOn
			return errNo
		}})
	}()
	<-claimed
	ctx, stop := context.WithCancel(context.Background())
	stop()
	require.ErrorIs(t, r.Resume(ctx, &carrier.Comeback{Wire: newScripted(), Received: 1}), context.Canceled)
	close(goOn)
	require.ErrorIs(t, <-first, errNo)
	require.NoError(t, r.over(1, nil), "and then it is the other one's")
}

func TestAway_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := away(t)
		begin := time.Now()
		r.Wait()
		require.Equal(t, time.Minute, time.Since(begin))
		r.wantStory("away", "ended", "finished")
		require.ErrorIs(t, context.Cause(r.ctx), codec.ErrUnavailable)
	})
}

func TestAway_HasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := away(t)
		begin := time.Now()
		r.End(codec.ErrSessionClosed)
		r.Wait()
		require.Zero(t, time.Since(begin))
		r.wantStory("away", "ended", "finished")
		require.ErrorIs(t, r.over(1, nil), codec.ErrSessionClosed)
	})
}

func TestResume_EndMeanwhile(t *testing.T) {
	r := away(t)
	err := r.over(1, func(b *carrier.Comeback) {
		b.Confirm = func(uint64, int) error { r.End(codec.ErrStalled); return errNo }
	})
	require.ErrorIs(t, err, errNo)
	r.Wait()
	r.wantStory("away", "ended", "finished")
}

func TestPeerClose_IsNoWireLoss(t *testing.T) {
	r := newRig(t, resumable)
	r.up.receive = func(_ message.Type, f []byte) error {
		m, err := message.ParseControl(f)
		require.NoError(t, err)
		return carrier.EndedBy(m.(message.SessionClose))
	}
	r.run()
	r.wire.says(message.SessionClose{Code: codec.SessionClosed, Message: "enough"})
	r.wantStory("Control", "ended", "finished")
}
