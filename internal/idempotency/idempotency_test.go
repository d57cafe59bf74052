package idempotency

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/flow"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/statetest"
	"github.com/asterisque-go/asterisque/limits"
	"github.com/stretchr/testify/require"
)

// TestDurableAnswer_States compares the transitions with a table.
func TestDurableAnswer_States(t *testing.T) {
	statetest.Steps[state, event]{
		waiting: {
			begins: running, outlives: alone, ends: answered,
			passes: waiting, dropped: forgotten,
		},
		running: {
			outlives: alone, ends: answered,
			passes: waiting, dropped: forgotten,
		},
		alone: {
			begins: alone, cancels: running, ends: answered,
			passes: waiting, dropped: forgotten,
		},
		answered: {lapses: forgotten},
	}.Check(t, forgotten, lapses, state.next)
}

// fakeCall is a durable call without a session.
type fakeCall struct {
	relation Role
	canceled atomic.Bool
	params   []byte // of a call that has taken over
	result   []byte
	abort    *codec.Abort
	answers  int
}

func (c *fakeCall) Role() *Role            { return &c.relation }
func (c *fakeCall) Weight() int            { return 100 }
func (c *fakeCall) Cancel()                { c.canceled.Store(true) }
func (c *fakeCall) TakeOver(params []byte) { c.params = params }

func (c *fakeCall) Awaited(result []byte, a *codec.Abort) {
	c.result, c.abort = result, a
	c.answers++
}

// rig has the answers of a node with two peers.
type rig struct {
	Answers
	owners quota.Owners
	a, b   *quota.Owner
}

func newRig(t *testing.T, p Plan) *rig {
	r := new(rig)
	r.owners.Init(0)
	if p.Lifetime == 0 {
		p.Lifetime, p.Running, p.Share = time.Minute, 4, 1
	}
	r.Init(p, &r.owners)
	r.a, r.b = r.owners.Join(quota.NameOf("a", "", nil), "a"), r.owners.Join(quota.NameOf("b", "", nil), "b")
	t.Cleanup(r.End)
	return r
}

// enter enters a call of an owner with a key, of function 1, with these parameters.
func (r *rig) enter(w *quota.Owner, key, params string) (c *fakeCall, first *Answer, refused *codec.Abort) {
	c = new(fakeCall)
	first, refused = r.Enter(Identity{Owner: w, Function: 1, Key: []byte(key), Codec: "cbor", Params: []byte(params)}, c)
	return c, first, refused
}

func (r *rig) requireFirst(t *testing.T, w *quota.Owner, key string) *fakeCall {
	t.Helper()
	c, first, refused := r.enter(w, key, "p")
	require.Nil(t, refused)
	require.Nil(t, first)
	require.NotNil(t, c.relation.First)
	return c
}

// requireRepeats enters a repetition, which waits.
func (r *rig) requireRepeats(t *testing.T, w *quota.Owner, key string) (c *fakeCall, displaced Call) {
	t.Helper()
	c, first, refused := r.enter(w, key, "p")
	require.Nil(t, refused)
	waits, displaced := r.Await(first, c)
	require.True(t, waits)
	return c, displaced
}

func TestAnswers_RepetitionsShareOne(t *testing.T) {
	r := newRig(t, Plan{})
	first := r.requireFirst(t, r.a, "k")
	waits, _ := r.requireRepeats(t, r.a, "k")
	r.requireFirst(t, r.b, "k") // keys of another owner
	r.Start(first.relation.First)
	r.Finish(first.relation.First, []byte("done"), nil)
	require.Equal(t, "done", string(waits.result))
	late, known, refused := r.enter(r.a, "k", "p")
	require.Nil(t, refused)
	there, _ := r.Await(known, late)
	require.False(t, there)
	require.Equal(t, "done", string(known.Result))
	require.Nil(t, known.Abort)
}

func TestAnswers_KeyOfAnotherCall(t *testing.T) {
	r := newRig(t, Plan{})
	r.requireFirst(t, r.a, "k")
	_, _, refused := r.enter(r.a, "k", "other")
	require.ErrorIs(t, refused, codec.ErrBadParams)
	require.ErrorContains(t, refused, "draw a key for each call")
	_, refused = r.Enter(Identity{Owner: r.a, Stream: true, Key: []byte("s")}, new(fakeCall))
	require.ErrorIs(t, refused, ErrStream)
	unproved := r.owners.Join(quota.NameOf("", "", nil), "")
	_, refused = r.Enter(Identity{Owner: unproved, Key: []byte("short")}, new(fakeCall))
	require.ErrorContains(t, refused, "16 random bytes")
}

func TestAnswers_HandOn(t *testing.T) {
	r := newRig(t, Plan{})
	first := r.requireFirst(t, r.a, "k")
	next, _ := r.requireRepeats(t, r.a, "k")
	r.HandOn(first.relation.First)
	require.Equal(t, "p", string(next.params), "it runs in place of the first call")
	require.NotNil(t, next.relation.First)
	r.HandOn(next.relation.First)
	r.requireFirst(t, r.a, "k")
}

func TestAnswers_Withdraw(t *testing.T) {
	r := newRig(t, Plan{})
	first := r.requireFirst(t, r.a, "k")
	gone, _ := r.requireRepeats(t, r.a, "k")
	require.True(t, r.Withdraw(gone))
	require.False(t, r.Withdraw(gone))
	r.Finish(first.relation.First, nil, nil)
	require.Zero(t, gone.answers)
}

func TestAnswers_NinthRepetition(t *testing.T) {
	r := newRig(t, Plan{})
	r.requireFirst(t, r.a, "k")
	oldest, _ := r.requireRepeats(t, r.a, "k")
	for range mostRepetitions - 1 {
		_, displaced := r.requireRepeats(t, r.a, "k")
		require.Nil(t, displaced)
	}
	_, displaced := r.requireRepeats(t, r.a, "k")
	require.Same(t, oldest, displaced)
}

func TestAnswers_ErrorsThatAreForgotten(t *testing.T) {
	for _, c := range []struct {
		name   string
		abort  codec.Abort
		forget bool
		kept   bool
	}{
		{"an error", codec.Abort{Code: codec.Failed}, false, true},
		{"after ForgetAnswer", codec.Abort{Code: codec.Failed}, true, false},
		{"a rejection", codec.Abort{Code: codec.Overloaded, Ran: codec.Refused}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Plan{})
			first := r.requireFirst(t, r.a, "k")
			if c.forget {
				r.ForgetAnswer(first)
			}
			r.Finish(first.relation.First, nil, &c.abort)
			_, known, refused := r.enter(r.a, "k", "p")
			require.Nil(t, refused)
			require.Equal(t, c.kept, known != nil)
		})
	}
}

func TestAnswers_Expire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Plan{})
		first := r.requireFirst(t, r.a, "k")
		r.Finish(first.relation.First, []byte("done"), nil)
		fakeclock.Sleep(time.Minute + time.Millisecond)
		r.requireFirst(t, r.a, "k")
	})
}

func TestAnswers_ShareOfOneOwner(t *testing.T) {
	r := newRig(t, Plan{Lifetime: time.Minute, Running: 4, Share: 0.5, Most: limits.Amount{Messages: 4}})
	r.requireFirst(t, r.a, "1")
	r.requireFirst(t, r.a, "2")
	_, _, refused := r.enter(r.a, "3", "p")
	require.ErrorIs(t, refused, codec.ErrOverloaded)
	require.ErrorContains(t, refused, "this peer")
	r.requireFirst(t, r.b, "3")
	r.requireFirst(t, r.b, "4")
	c := r.owners.Join(quota.NameOf("c", "", nil), "c")
	_, _, refused = r.enter(c, "5", "p")
	require.ErrorContains(t, refused, "too many durable calls")
}

func TestAnswers_Orphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, Plan{Lifetime: time.Minute, Running: 2, Share: 1})
		var calls []*fakeCall
		for _, key := range []string{"1", "2", "3"} {
			c := r.requireFirst(t, r.a, key)
			r.Start(c.relation.First)
			r.Orphan(c.relation.First)
			calls = append(calls, c)
		}
		canceled := func() (all []bool) {
			synctest.Wait()
			for _, c := range calls {
				all = append(all, c.canceled.Load())
			}
			return all
		}
		require.Equal(t, []bool{true, false, false}, canceled(), "the oldest beyond two of one owner")
		require.Equal(t, 200, r.a.Tally.Held()-3*(flow.Held(len("subject a\x001"))), "no session counts them")
		fakeclock.Sleep(time.Minute + time.Millisecond)
		require.Equal(t, []bool{true, true, true}, canceled())
	})
}

func TestAnswers_End(t *testing.T) {
	r := newRig(t, Plan{})
	c := r.requireFirst(t, r.a, "k")
	r.Start(c.relation.First)
	r.End()
	require.True(t, c.canceled.Load())
}
