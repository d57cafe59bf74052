package carrier_test

import (
	"bytes"
	"cmp"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/priority"
)

// inParts returns the parts of a message. Each part but the last has size bytes.
func inParts(pipe uint64, size int, m interface{ AppendTo([]byte) []byte }) (parts []*message.Part) {
	frame := m.AppendTo(nil)
	whole := uint64(len(frame))
	for len(frame) > 0 {
		n := min(size, len(frame))
		parts = append(parts, &message.Part{Pipe: pipe, Bytes: frame[:n], Whole: whole})
		frame, whole = frame[n:], 0
	}
	return parts
}

// blockOf returns a Block of n bytes.
func blockOf(pipe uint64, n int) *message.Block {
	return &message.Block{Pipe: pipe, Payload: bytes.Repeat([]byte{byte(pipe)}, n)}
}

func resultOf(pipe uint64, n int) *message.Close {
	return &message.Close{Pipe: pipe, Result: make([]byte, n)}
}

func TestParts_OfSeveralPipes(t *testing.T) {
	r := newRig(t, nil)
	var got [][]byte
	r.up.receive = func(_ message.Type, frame []byte) error {
		got = append(got, bytes.Clone(frame))
		return nil
	}
	r.run()
	a, b := inParts(1, 1024, blockOf(1, 3000)), inParts(3, 2000, resultOf(3, 2500))
	r.wire.says(a[0], b[0], open(5), a[1], b[1], a[2])
	r.wantStory("Block begins", "Close begins", "Open", "Close", "Block")
	require.Equal(t, [][]byte{open(5).AppendTo(nil), resultOf(3, 2500).AppendTo(nil), blockOf(1, 3000).AppendTo(nil)}, got)
	require.Zero(t, r.Receiving())
}

func TestParts_CountAsWhole(t *testing.T) {
	r := newRig(t, nil)
	var others []carrier.Unfinished
	r.up.admit = func(_ message.Head, o carrier.Unfinished) (carrier.Admission, priority.Priority, error) {
		others = append(others, o)
		return carrier.Admitted, 0, nil
	}
	r.run()
	whole := &message.Open{Pipe: 7, Params: make([]byte, 9000)}
	r.wire.says(inParts(7, 1024, whole)[0], inParts(1, 1024, blockOf(1, 3000))[0], inParts(3, 1024, resultOf(3, 3000))[0], &message.Part{Pipe: 9, GivenUp: true})
	r.wantStory("Open begins", "Block begins", "Close begins", "stray")
	n := len(whole.AppendTo(nil))
	require.Equal(t, []carrier.Unfinished{
		{}, {Opens: 1, Content: 9000, Counted: n, Bytes: n}, {Opens: 1, Content: 9000, Counted: n + 3006, Bytes: n + 3006},
	}, others)
	require.Equal(t, n+3006+3007, r.Receiving())
	r.Forget(1)
	r.Forget(3)
	require.Equal(t, n, r.Receiving())
	r.wire.says(&message.Part{Pipe: 7, GivenUp: true}, open(9))
	r.wantStory("Open begins", "Block begins", "Close begins", "stray", "Open")
	require.Zero(t, r.Receiving())
}

func TestParts_IgnoredHoldNothing(t *testing.T) {
	for use, last := range map[carrier.Admission][]string{carrier.Ignored: nil, carrier.Late: {"stray", "stray"}} {
		r := newRig(t, nil)
		r.up.admit = func(message.Head, carrier.Unfinished) (carrier.Admission, priority.Priority, error) {
			return use, 0, nil
		}
		r.run()
		p := inParts(1, 1024, blockOf(1, 2000))
		r.wire.says(p[0])
		r.wantStory(append([]string{"Block begins"}, last[:len(last)/2]...)...)
		// The first part decides whether the message is admitted, so it precedes this.
		require.Eventually(t, func() bool { return r.Receiving() == 0 }, 2*time.Minute, time.Millisecond)
		r.wire.says(p[1], open(1))
		r.wantStory(append(append([]string{"Block begins"}, last...), "Open")...)
	}
}

func TestParts_Violations(t *testing.T) {
	two := inParts(1, 1024, blockOf(1, 2000))
	three := inParts(1, 1024, blockOf(1, 3000))
	long := inParts(1, 1024, blockOf(1, 2000))[1]
	long.Bytes = append(bytes.Clone(long.Bytes), make([]byte, 1024)...)
	short := &message.Part{Pipe: 1, Bytes: []byte{1}}
	tooLong := inParts(1, 1024, blockOf(1, 1<<20))[0]
	for reason, says := range map[string][]*message.Part{
		"which has 2006":                             {two[0], long},
		"a part of 1 bytes":                          {three[0], short},
		"and the one before is unfinished":           {two[0], two[0]},
		"and the largest has 1048576":                {tooLong},
		"of the same priority is unfinished":         {inParts(1, 1024, resultOf(1, 3000))[0], inParts(3, 1024, resultOf(3, 3000))[0]},
		"is of a message of pipe 1":                  {{Pipe: 3, Bytes: two[0].Bytes, Whole: two[0].Whole}},
		"a content of 2000 bytes in a frame of 9000": {{Pipe: 1, Bytes: two[0].Bytes, Whole: 9000}},
	} {
		r := newRig(t, nil)
		cause := make(chan *codec.Abort, 1)
		r.up.ended = func(a *codec.Abort) { cause <- a }
		r.run()
		for _, p := range says {
			r.wire.says(p)
		}
		a := <-cause
		require.Equal(t, codec.Protocol, a.Code, reason)
		require.Contains(t, a.Message, reason)
	}
}

func TestParts_ContinueAfterResume(t *testing.T) {
	r := newRig(t, resumable).run()
	parts := inParts(1, 1024, blockOf(1, 3000))
	r.wire.says(parts[0], parts[1])
	r.wantStory("Block begins")
	require.Eventually(t, func() bool { return r.Received() == 2 }, time.Minute, time.Millisecond)
	r.wire.Close()
	r.wantStory("Block begins", "away")
	require.Equal(t, 3006, r.Receiving())
	w := newScripted()
	require.NoError(t, r.Resume(t.Context(), &carrier.Comeback{Wire: w}))
	w.says(parts[2])
	r.wantStory("Block begins", "away", "back", "Block")
	require.Zero(t, r.Receiving())
	r.End(codec.ErrSessionClosed)
	w.Close()
}

// The Wire does not meter bytes: a frame counts as 16 KiB.
func TestParts_PeerStopsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *carrier.Config) { cfg.PingInterval, cfg.PingTimeout = time.Second, 10*time.Second })
		cause := make(chan *codec.Abort, 1)
		r.up.ended = func(a *codec.Abort) { cause <- a }
		r.run()
		r.wire.says(inParts(1, 1024, resultOf(1, 3000))[0])
		for range 15 { // the peer is alive, and continues slowly
			r.wire.says(message.Pong{})
			fakeclock.Sleep(2 * time.Second)
		}
		a := <-cause
		require.Equal(t, codec.Unavailable, a.Code)
		require.Contains(t, a.Message, "a message in parts has begun")
	})
}

func TestParts_OvertakenForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *carrier.Config) { cfg.PingInterval, cfg.PingTimeout = time.Second, 10*time.Second }).run()
		parts := inParts(1, 1024, resultOf(1, 2000))
		r.wire.says(parts[0])
		for range 200 {
			r.wire.says(message.Pong{})
			fakeclock.Sleep(500 * time.Millisecond)
		}
		require.NoError(t, r.ctx.Err())
		require.Equal(t, 2007, r.Receiving())
	})
}

func TestParts_BlockHoldsItsCredit(t *testing.T) {
	r := newRig(t, nil)
	grants := map[int]int{1018: 1100, 2042: 2100, 3066: 9000, 4090: 9000}
	r.up.blockPart = func(_ uint64, got int) (int, carrier.Admission) {
		return cmp.Or(grants[got], math.MaxInt), carrier.Admitted
	}
	var got []byte
	r.up.receive = func(_ message.Type, frame []byte) error {
		got = bytes.Clone(frame)
		return nil
	}
	r.run()
	parts := inParts(1, 1024, blockOf(1, 9000))
	for i, held := range []int{1106, 2106, 9006, 9006} { // the head has 6 bytes
		r.wire.says(parts[i])
		require.Eventually(t, func() bool { return r.Receiving() == held }, time.Minute, time.Millisecond, "part %d", i)
	}
	for _, p := range parts[4:] {
		r.wire.says(p)
	}
	r.wantStory("Block begins", "Block")
	require.Equal(t, blockOf(1, 9000).AppendTo(nil), got)
	require.Zero(t, r.Receiving())
}

func TestParts_BlockNotWanted(t *testing.T) {
	for name, refuse := range map[string]func(r *rig, ignores *atomic.Bool){
		"its pipe refuses a part": func(_ *rig, ignores *atomic.Bool) { ignores.Store(true) },
		"its receiver stops":      func(r *rig, _ *atomic.Bool) { r.Ignore(1) },
	} {
		r := newRig(t, nil)
		var ignores atomic.Bool
		r.up.blockPart = func(uint64, int) (int, carrier.Admission) {
			if ignores.Load() {
				return 0, carrier.Ignored
			}
			return math.MaxInt, carrier.Admitted
		}
		r.run()
		parts := inParts(1, 1024, blockOf(1, 3000))
		r.wire.says(parts[0])
		require.Eventually(t, func() bool { return r.Receiving() == 3006 }, time.Minute, time.Millisecond, name)
		refuse(r, &ignores)
		r.wire.says(parts[1])
		require.Eventually(t, func() bool { return r.Receiving() == 0 }, time.Minute, time.Millisecond, name)
		r.wire.says(parts[2], open(3))
		r.wantStory("Block begins", "Open")
		require.False(t, r.HasPart(1), name)
	}
}

func TestParts_BlockStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(cfg *carrier.Config) { cfg.PingInterval, cfg.PingTimeout = time.Second, 10*time.Second })
		var hasCredit atomic.Bool
		var stalled atomic.Pointer[time.Time]
		r.up.blockIdle = func(pipe uint64, late bool) bool {
			if hasCredit.Load() && late {
				now := time.Now()
				stalled.CompareAndSwap(nil, &now)
				r.Forget(pipe)
			}
			return hasCredit.Load()
		}
		r.run()
		parts := inParts(1, 1024, blockOf(1, 9000))
		alive := func(d time.Duration) {
			for range d / time.Second {
				r.wire.says(message.Pong{})
				fakeclock.Sleep(time.Second)
			}
		}
		r.wire.says(parts[0])
		alive(time.Minute) // without credit
		hasCredit.Store(true)
		r.wire.says(parts[1])
		alive(8 * time.Second)
		r.wire.says(parts[2])
		begin := time.Now()
		alive(20 * time.Second)
		require.NoError(t, r.ctx.Err(), "the other pipes go on")
		took := stalled.Load().Sub(begin)
		require.GreaterOrEqual(t, took, 10*time.Second)
		require.Less(t, took, 13*time.Second)
	})
}
