package asterisque

import (
	"bytes"
	"context"
	"fmt"
	"math/bits"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
	"github.com/asterisque-go/asterisque/internal/resume"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
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
	d.s.calls.Table.DrainHere()
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
		d.s.calls.AnnounceEnd(carrier.Now)
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
		want, _ := d.s.calls.Table.DrainHere()
		go d.s.Close() // ends when the peer has read
		d.wantDrainBefore(2, want)
	})
}

// TestSession_SizeClass bounds the memory of every session, used or not. With its header of 8 bytes
// a Session has the 1,408 of a class of Go's allocator; the next class has 1,536.
func TestSession_SizeClass(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("pointers are smaller here")
	}
	require.LessOrEqual(t, int(unsafe.Sizeof(Session{})), 1400, "what only some need is better allocated when they do")
}

// The options of a call stay in their size class.
func TestCallConfig_SizeClass(t *testing.T) {
	if bits.UintSize < 64 {
		t.Skip("pointers are smaller here")
	}
	require.LessOrEqual(t, int(unsafe.Sizeof(callConfig{})), 128)
}

// A secret becomes void as soon as its peer has resumed, even if the peer sends nothing.
func TestResume_FormerSecretVoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := NewNode(WithResume(Resume{For: time.Minute}), WithTimeouts(Timeouts{Ping: -1})), NewNode(WithResume(Resume{For: time.Minute}), WithTimeouts(Timeouts{Ping: -1}))
		defer here.Close()
		defer there.Close()
		var last wire.Wire
		conn, err := here.Connect(context.Background(), "", ReconnectConfig{Dial: func(context.Context) (wire.Wire, error) {
			a, b := wire.Pipe()
			go there.Accept(context.Background(), b) // ends with the handshake
			last = a
			return a, nil
		}})
		require.NoError(t, err)
		defer conn.Close()
		synctest.Wait()
		s := there.Sessions()[0]
		before := s.res.Latest()
		last.Close()
		fakeclock.Sleep(time.Second)
		synctest.Wait()
		require.False(t, s.Away())
		require.NotEqual(t, before, s.res.Latest())
		require.False(t, s.res.Entitles(before))
		require.True(t, s.res.Entitles(s.res.Latest()))
	})
}

// TestSuspended_Quarter checks that suspended sessions have a quarter of the node's bounds, and
// those of one peer an eighth of the bytes.
func TestSuspended_Quarter(t *testing.T) {
	n := NewNode(WithLimits(Limits{Budget: 80 << 20}), WithAdmission(Admission{Sessions: 41, PerAddress: 7}))
	defer n.Close()
	most, mostOfOwner := n.suspended.Limits()
	require.Equal(t, resume.Amount{Sessions: 11, Bytes: 20 << 20}, most, "rounded up")
	require.Equal(t, resume.Amount{Sessions: 7, Bytes: 10 << 20}, mostOfOwner)
}

// TestConnection_States compares the transitions with a table.
func TestConnection_States(t *testing.T) {
	events := []connectionEvent{sessionUp, sessionDown, connectionOver}
	const never = ConnectionState(99)
	table := map[ConnectionState][]ConnectionState{ // by event
		connecting:   {Connected, never, Lost},
		Connected:    {never, Reconnecting, Lost},
		Reconnecting: {Connected, never, Lost},
		Lost:         {never, never, never},
	}
	for from, row := range table {
		for i, e := range events {
			t.Run(fmt.Sprint(from, " ", e), func(t *testing.T) {
				want, may := row[i], row[i] != never
				if !may {
					want = from
				}
				got, ok := from.next(e)
				require.Equal(t, may, ok)
				require.Equal(t, want, got)
			})
		}
	}
	require.Equal(t, "state 7", ConnectionState(7).String())
}

// The declarations below are for the tests outside of the package.

// PlacesWithin returns the number of nested calls that hold a place at n, for all its peers.
func PlacesWithin(n *Node) int { return n.scheduler.NestedInUse() }

// WithMaxPart divides messages of more than n bytes into parts of n bytes, 4 KiB at least.
func WithMaxPart(n int) Option { return func(c *config) { c.maxPart = n } }
