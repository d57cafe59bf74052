package carrier_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/outbox"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
)

func TestReader_KeepsFrameOrder(t *testing.T) {
	r := newRig(t, nil).run()
	r.wire.says(open(1), &message.Block{Pipe: 1, End: true}, message.Ping{N: 1}, &message.Close{Pipe: 1})
	r.wantStory("Open", "Block", "Control", "Close")
}

func TestPut_When(t *testing.T) {
	r := newRig(t, nil)
	r.up.receive = func(kind message.Type, frame []byte) error {
		m, err := message.ParseOpen(frame)
		require.NoError(t, err)
		return r.sends(m.Pipe, carrier.AfterReading)
	}
	r.wire.says(open(1), open(3), open(5))
	r.run()
	require.Equal(t, []message.Type{message.CloseType, message.CloseType, message.CloseType}, types(t, <-r.wire.writes),
		"what answers all that has arrived goes together")
	require.NoError(t, r.sends(7, carrier.Now))
	require.Len(t, <-r.wire.writes, 1)
	require.NoError(t, r.sends(9, carrier.Now))
	require.Len(t, <-r.wire.writes, 1)
}

func TestReader_WritesBeforeItStops(t *testing.T) {
	r := newRig(t, nil)
	r.up.receive = func(_ message.Type, frame []byte) error {
		m, err := message.ParseOpen(frame)
		require.NoError(t, err)
		r.inbound.Add(1)
		return r.sends(m.Pipe, carrier.AfterReading)
	}
	r.wire.says(open(1), open(3), open(5))
	r.run()
	require.Len(t, <-r.wire.writes, 2, "the third one waits at the soft limit")
	r.wantStory("Open", "Open")
	r.inbound.Remove(2, 2)
	require.Len(t, <-r.wire.writes, 1)
}

func TestSoftLimit_PassesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.inbound.Add(1)
		r.inbound.Add(1)
		r.wire.says(&message.Close{Pipe: 0}, message.Ping{N: 1}, open(1), &message.Close{Pipe: 2})
		r.run()
		synctest.Wait()
		r.wantStory("Close", "Control")
		r.inbound.Remove(1, 1)
		synctest.Wait()
		r.wantStory("Close", "Control", "Open", "Close")
		times, elapsed := r.Stops()
		require.EqualValues(t, 1, times)
		require.Zero(t, elapsed)
	})
}

func TestPause_ThenUnpause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.StopReading()
		r.wire.says(open(1))
		r.run()
		synctest.Wait()
		r.wantStory()
		r.StartReading()
		r.wantStory("Open")
	})
}

func TestSoftLimit_PassesProbeFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *carrier.Config) {
			cfg.PingInterval, cfg.PingTimeout, cfg.Pings.Dialled = 10*time.Second, 30*time.Second, true
		})
		r.StopReading()
		r.wire.says(open(1), open(3))
		r.run()
		fakeclock.Sleep(11 * time.Second)
		synctest.Wait()
		r.wantStory("Open")
	})
}

func TestWireLoss_WithoutResume(t *testing.T) {
	r := newRig(t, nil).run()
	close(r.wire.in)
	r.wantStory("ended", "finished")
	require.EqualError(t, context.Cause(r.ctx), "asterisque: session closed: the peer closed the wire: EOF")
	require.Equal(t, carrier.Closed, r.State())
}

func TestEnd_GoodbyeIsLast(t *testing.T) {
	r := newRig(t, nil)
	r.up.ended = func(cause *codec.Abort) {
		require.ErrorIs(t, r.sends(9, carrier.Now), outbox.ErrClosed, "nothing departs any more when calls are aborted")
		require.ErrorIs(t, context.Cause(r.ctx), cause)
	}
	r.run()
	require.NoError(t, r.sends(1, carrier.Now))
	require.Equal(t, []message.Type{message.CloseType}, types(t, <-r.wire.writes))
	r.End(codec.ErrStalled)
	r.End(codec.ErrHardLimit)
	bye, err := message.ParseControl((<-r.wire.writes)[0])
	require.NoError(t, err)
	require.Equal(t, codec.Stalled, bye.(message.SessionClose).Code, "only the first cause counts")
	r.wire.says(message.SessionClose{Code: codec.SessionClosed})
	r.wantStory("ended", "finished")
}

func TestEnd_LingersASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil).run()
		begin := time.Now()
		r.End(codec.ErrStalled)
		r.Wait()
		require.Equal(t, time.Second, time.Since(begin))
		r.wantStory("ended", "finished")
	})
}

func TestFinish_WaitsForGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil)
		writes := make(chan struct{})
		r.wire.write = func() { <-writes }
		r.run()
		r.End(codec.ErrStalled)
		fakeclock.Sleep(time.Minute) // the Wire is closed by then, and its Write ignores that
		synctest.Wait()
		r.wantStory("ended")
		close(writes)
		r.wantStory("ended", "finished")
	})
}

func TestWait_FromEnded(t *testing.T) {
	for range 50 {
		r := newRig(t, nil).run()
		stop := context.AfterFunc(r.ctx, func() { r.wire.Close(); r.Wait() })
		r.End(codec.ErrStalled)
		r.wire.Close()
		r.Wait()
		stop()
	}
}

func TestProtocol_ViolationEndsSession(t *testing.T) {
	r := newRig(t, nil)
	r.up.receive = func(message.Type, []byte) error { return errNo }
	r.run()
	r.wire.says(open(1))
	bye, err := message.ParseControl((<-r.wire.writes)[0])
	require.NoError(t, err)
	require.Equal(t, message.SessionClose{Code: codec.Protocol, Message: "no"}, bye)
}

func TestWire_Panics(t *testing.T) {
	for name, end := range map[string]func(){"panics": func() { panic("oops") }, "ends the goroutine": runtime.Goexit} {
		t.Run(name+" while it reads", func(t *testing.T) {
			r := newRig(t, nil)
			r.wire.read = func() { r.wire.read = nil; end() }
			r.run()
			r.wantStory("ended", "finished")
			require.ErrorIs(t, context.Cause(r.ctx), codec.ErrSessionClosed)
		})
		t.Run(name+" while it writes", func(t *testing.T) {
			r := newRig(t, nil)
			r.wire.write = end
			r.run()
			require.NoError(t, r.sends(1, carrier.Now))
			r.wantStory("ended", "finished")
			require.ErrorIs(t, context.Cause(r.ctx), codec.ErrSessionClosed)
		})
	}
}

func TestReader_GoroutineEnded(t *testing.T) {
	r := newRig(t, nil)
	r.up.receive = func(message.Type, []byte) error {
		r.EnterCode()
		defer r.LeaveCode()
		runtime.Goexit()
		return nil
	}
	r.run()
	r.wire.says(open(1), message.SessionClose{Code: codec.SessionClosed})
	r.wantStory("Open", "ended", "finished")
	require.ErrorIs(t, context.Cause(r.ctx), codec.ErrPanicked)
}

func TestPutLast_ForgetsBeforeWrite(t *testing.T) {
	r := newRig(t, nil)
	var written, forgotten bool
	r.wire.write = func() { require.True(t, forgotten); written = true }
	r.run()
	f := outbox.AcceptedFlow(0, 1)
	require.NoError(t, r.PutLast(&f, &outbox.Message{Type: message.CloseType}, carrier.Now, func() {
		require.False(t, written)
		select {
		case <-r.Flush():
			t.Error("a Flush does not know of the message")
		default:
		}
		forgotten = true
	}))
	<-r.wire.writes
	require.ErrorIs(t, r.PutLast(&f, &outbox.Message{Type: message.CloseType}, carrier.Now, func() { t.Error("it is not the last") }), outbox.ErrEnded)
}
