package asterisque

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/wire"
)

// leaving is a session that shuts down, and the Wire of its peer, which the test writes itself.
type leaving struct {
	t    *testing.T
	s    *Session
	peer wire.Wire
}

// newLeaving has function 10, which returns its parameters, and 11, which runs until its context
// ends. There is one worker.
func newLeaving(t *testing.T) *leaving {
	svc := NewService()
	Func[[]byte, []byte](10, "f").Handle(svc, func(_ context.Context, b []byte) ([]byte, error) { return b, nil })
	Func[[]byte, []byte](11, "g").Handle(svc, func(ctx context.Context, _ []byte) ([]byte, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	node := NewNode(WithService(svc), WithWorkers(Workers{Session: 1}))
	a, b := wire.Pipe()
	t.Cleanup(func() { a.Close(); node.Close() })
	sessions := make(chan *Session, 1)
	go func() { // ends with the handshake
		s, _ := node.Accept(context.Background(), b)
		sessions <- s
	}()
	d := &leaving{t: t, peer: a}
	d.write(message.Sync{Version: message.Version, MaxMessage: 1 << 20, Codecs: []string{"cbor"}})
	_, err := a.ReadFrame(1 << 10)
	require.NoError(t, err)
	d.s = <-sessions
	return d
}

func (d *leaving) write(m interface{ AppendTo([]byte) []byte }) {
	require.NoError(d.t, d.peer.WriteFrames([][]byte{m.AppendTo(nil)}))
}

// wantDrainBefore reads until the Drain, and rejects a Close of that pipe before it.
func (d *leaving) wantDrainBefore(pipe uint64, want message.Drain) {
	d.t.Helper()
	for {
		frame, err := d.peer.ReadFrame(1 << 20)
		require.NoError(d.t, err)
		if c, err := message.ParseControl(frame); err == nil {
			if drain, ok := c.(message.Drain); ok {
				require.Equal(d.t, want, drain)
				return
			}
		} else if c, err := message.ParseClose(frame); err == nil {
			require.NotEqual(d.t, pipe, c.Pipe, "not the refusal, of which the peer would not know why")
		}
	}
}

// A call arrives when Shutdown has begun to reject calls, before the Drain is sent.
func TestDrain_BeforeRejection(t *testing.T) {
	d := newLeaving(t)
	d.s.table.drainHere()
	d.write(&message.Open{Pipe: 0, Function: 10})
	d.wantDrainBefore(0, message.Drain{None: true})
}

// The writer waits for a peer that does not read, so that the Drain and the rejection leave
// together.
func TestDrain_LeavesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLeaving(t)
		params, err := codec.CBOR.Append(nil, bytes.Repeat([]byte("x"), 60<<10))
		require.NoError(t, err)
		d.write(&message.Open{Pipe: 0, Function: 10, Params: params})
		synctest.Wait()
		d.s.announceEnd()
		d.write(&message.Open{Pipe: 2, Function: 10})
		synctest.Wait()
		d.wantDrainBefore(2, message.Drain{Last: 0})
	})
}

// Two shutdowns at the same time: the Drain of the first is not in the outbox yet.
func TestDrain_ConcurrentClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newLeaving(t)
		none, err := codec.CBOR.Append(nil, []byte{})
		require.NoError(t, err)
		d.write(&message.Open{Pipe: 0, Function: 11, Params: none})
		d.write(&message.Open{Pipe: 2, Function: 11, Params: none})
		synctest.Wait()
		want, _ := d.s.table.drainHere()
		go d.s.Close() // ends when the peer has read
		d.wantDrainBefore(2, want)
	})
}
