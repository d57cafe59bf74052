package handshake

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/admission"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/asterisque-go/asterisque/wire"
)

// TestHandshake_States compares the transitions with a table.
func TestHandshake_States(t *testing.T) {
	events := []event{answers, agrees, rejects, timeOver, placeLost, nodeCloses}
	// final states
	over := []state{agreed, rejected, timedOut, displaced, abandoned}
	const never = state(99)
	table := map[state][]state{ // by event; never: the event comes too late
		exchanging: {answering, agreed, rejected, timedOut, displaced, abandoned},
		answering:  {never, agreed, rejected, timedOut, displaced, abandoned},
	}
	for _, s := range over {
		table[s] = []state{never, never, never, never, never, never}
	}
	for from, row := range table {
		for i, e := range events {
			t.Run(fmt.Sprint(from, " ", e), func(t *testing.T) {
				want, inTime := row[i], row[i] != never
				if !inTime {
					want = from
				}
				got, ok := from.next(e)
				require.Equal(t, inTime, ok)
				require.Equal(t, want, got)

				var h status
				h.at.Store(uint32(from))
				require.Equal(t, inTime, h.move(e))
				require.Equal(t, want, h.now())
			})
		}
	}
}

// running is the set of the handshakes of a node.
type running struct {
	mu     sync.Mutex
	all    map[*Handshake]bool
	closed bool
}

func (r *running) Add(h *Handshake) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all[h] = true
	return !r.closed
}

func (r *running) Remove(h *Handshake) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, h)
}

func (r *running) IsClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// newConfig returns the configuration of a side with these codecs.
func newConfig(t *testing.T, id string, codecs ...string) Config {
	plan, err := flow.NewPlan(limits.Amount{Bytes: 1 << 20}, 64<<10, 10)
	require.NoError(t, err)
	return Config{ID: id, Codecs: codecs, Plan: &plan, Time: time.Second, Resumes: true}
}

// newHandshakes returns the handshakes of both ends of a Wire. The second one has a place.
func newHandshakes(t *testing.T, a, b Config) (dials, accepts *Handshake) {
	here, there := wire.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	side := func(w wire.Wire, c Config) *Handshake {
		return &Handshake{Wire: w, Set: &running{all: make(map[*Handshake]bool)}, Log: slog.New(slog.DiscardHandler), Config: &c}
	}
	dials, accepts = side(here, a), side(there, b)
	accepts.From = there.RemoteAddr()
	place, refused := admission.New(admission.Limits{Time: b.Time}).Admit(there, accepts.From)
	require.Nil(t, refused)
	accepts.Place = place
	return dials, accepts
}

// result is the outcome of one side.
type result struct {
	a   Agreement
	err error
}

// propose runs the connecting side.
func propose(ctx context.Context, h *Handshake, was *Proof) <-chan result {
	c := make(chan result, 1)
	go func() {
		a, err := h.Propose(ctx, was, nil)
		c <- result{a, err}
	}()
	return c
}

// accept runs the accepting side, which accepts each peer.
func accept(ctx context.Context, h *Handshake) (hello Hello, err error) {
	_, done := h.Begin(ctx)
	defer done()
	if hello, err = h.Receive(); err != nil {
		return hello, err
	}
	reply := h.Sync(h.Config.Plan)
	reply.Codecs, reply.Session = []string{hello.Codec}, hello.Session[:]
	if err = h.Answer(reply); err != nil {
		err = h.Failed(err)
	}
	return hello, err
}

func TestHandshake_Agreement(t *testing.T) {
	dials, accepts := newHandshakes(t, newConfig(t, "a", "json", "cbor", "raw"), newConfig(t, "b", "raw", "cbor"))
	proposed := propose(t.Context(), dials, &Proof{Session: [16]byte{1}, Secret: [16]byte{2}, Received: 3})
	hello, err := accept(t.Context(), accepts)
	require.NoError(t, err)
	r := <-proposed
	require.NoError(t, r.err)
	require.Equal(t, "b", r.a.Node)
	require.Equal(t, "a", hello.Node)
	require.Equal(t, "cbor", r.a.Codec, "the first one of the peer that this side has")
	require.Equal(t, r.a.Session, hello.Session)
	require.NotZero(t, r.a.Session)
	require.True(t, r.a.Resume)
	require.Equal(t, []string{"json", "cbor", "raw"}, hello.Codecs)
	require.Equal(t, Proof{Session: [16]byte{1}, Secret: [16]byte{2}, Received: 3}, hello.Proof)
	require.Equal(t, r.a.Settings, hello.Settings, "both sides have the same plan")
}

func TestHandshake_Rejections(t *testing.T) {
	usual := func(s message.Sync) message.Sync {
		s.Version, s.Node, s.Codecs, s.MaxMessage = message.Version, []byte("peer"), []string{"cbor"}, 1<<20
		return s
	}
	closes := message.SessionClose{Code: codec.Unauthorized, Message: "no"}
	for _, c := range []struct {
		name  string
		first []byte // message of the peer
		is    error
		text  string
	}{
		{"no message of the protocol", []byte("GET / HTTP/1.1\r\n"), codec.ErrHandshake, "does not speak asterisque"},
		{"another message", message.Ping{}.AppendTo(nil), codec.ErrHandshake, "not a Sync"},
		{"a rejection", closes.AppendTo(nil), codec.ErrUnauthorized, "no"},
		{"no common codec", usual(message.Sync{}).AppendTo(nil), codec.ErrHandshake, "no common value codec"},
		{"small frames", func() []byte {
			s := usual(message.Sync{})
			s.Codecs, s.MaxMessage = []string{"raw"}, minFrame-1
			return s.AppendTo(nil)
		}(), codec.ErrHandshake, "is the least"},
		{"a large frame", make([]byte, maxSync+1), codec.ErrHandshake, "protocol 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dials, accepts := newHandshakes(t, newConfig(t, "a", "raw"), newConfig(t, "b", "raw"))
			go dials.Wire.WriteFrames([][]byte{c.first})
			_, err := accept(t.Context(), accepts)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.text)
			require.True(t, codec.Repeatable(err))
		})
	}
}

func TestHandshake_BothDial(t *testing.T) {
	dials, other := newHandshakes(t, newConfig(t, "a", "raw"), newConfig(t, "b", "raw"))
	proposed := propose(t.Context(), other, nil)
	r := <-propose(t.Context(), dials, nil)
	for _, err := range []error{r.err, (<-proposed).err} {
		require.ErrorIs(t, err, codec.ErrHandshake)
	}
}

func TestHandshake_SilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dials, accepts := newHandshakes(t, newConfig(t, "a", "raw"), newConfig(t, "b", "raw"))
		begin := time.Now()
		_, err := accept(t.Context(), accepts)
		require.Equal(t, time.Second, time.Since(begin))
		require.ErrorIs(t, err, ErrTransient)
		require.ErrorContains(t, err, "it sent nothing")
		frame, err := dials.Wire.ReadFrame(maxSync)
		require.NoError(t, err)
		m, err := message.ParseControl(frame)
		require.NoError(t, err)
		require.IsType(t, message.SessionClose{}, m, "the reason")
	})
}

// TestHandshake_Stopped ends a handshake by each event, before and after the answer.
func TestHandshake_Stopped(t *testing.T) {
	for _, c := range []struct {
		name string
		stop func(h *Handshake)
		is   error
	}{
		{"the node is closed", (*Handshake).Stop, ErrNodeClosed},
		{"the node drains", (*Handshake).Drain, ErrNodeClosed},
		{"another connection needs the place", (*Handshake).Cut, admission.ErrLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials, accepts := newHandshakes(t, newConfig(t, "a", "raw"), newConfig(t, "b", "raw"))
				_, done := accepts.Begin(t.Context())
				defer done()
				proposed := propose(t.Context(), dials, nil)
				_, err := accepts.Receive()
				require.NoError(t, err)
				require.True(t, accepts.Undecided())
				c.stop(accepts)
				synctest.Wait()
				require.False(t, accepts.Undecided())
				require.Error(t, accepts.Answer(accepts.Sync(accepts.Config.Plan)))
				require.ErrorIs(t, accepts.Refuse(errTooLate), c.is)
				require.Error(t, (<-proposed).err)
			})
		})
	}
}

func TestHandshake_Exposed(t *testing.T) {
	dials, _ := newHandshakes(t, newConfig(t, "a", "raw"), newConfig(t, "b", "raw"))
	dials.Wire = openWire{dials.Wire}
	_, err := dials.Propose(t.Context(), nil, nil)
	require.ErrorIs(t, err, codec.ErrUnauthorized)
	require.ErrorContains(t, err, "Access.PlainCredentials")
	dials.Config.PlainCredentials = true
	require.NoError(t, dials.Exposed())
}

// openWire is a Wire that anyone can read.
type openWire struct{ wire.Wire }

func (openWire) Private() bool { return false }
