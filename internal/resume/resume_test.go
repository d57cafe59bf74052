package resume

import (
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/internal/quota"
	"github.com/stretchr/testify/require"
)

// TestSuspended_FirstHasMost compares the first owner of the ranking with a search of all owners.
func TestSuspended_FirstHasMost(t *testing.T) {
	var w Sessions
	w.Init(Amount{}, Amount{})
	owners := make([]byOwner, 40)
	for range 5000 {
		of := &owners[rand.N(len(owners))]
		of.Sessions, of.Bytes = rand.N(4), rand.N(1000)
		w.rankLocked(of)
		n, sessions, bytes := 0, 0, 0
		for i := range owners {
			if o := &owners[i]; o.Sessions > 0 {
				n, sessions, bytes = n+1, max(sessions, o.Sessions), max(bytes, o.Bytes)
			}
		}
		require.Equal(t, n, w.bySessions.Len())
		require.Equal(t, n, w.byBytes.Len())
		if n > 0 {
			require.Equal(t, bytes, w.byBytes.First().Bytes)
			require.Equal(t, sessions, w.bySessions.First().Sessions)
		}
	}
}

// heldSession is a suspended session, which holds some bytes.
type heldSession struct {
	bytes int
	ended bool
}

func (s *heldSession) Holds() int        { return s.bytes }
func (s *heldSession) Fail(*codec.Abort) { s.ended = true }

// suspend adds n sessions of an owner, each of which holds some bytes.
func suspend(w *Sessions, owner *quota.Owner, n, bytes int) (all []*heldSession, entries []*Entry) {
	for range n {
		s, e := &heldSession{bytes: bytes}, new(Entry)
		e.Init(s, owner)
		w.Add(e)
		all, entries = append(all, s), append(entries, e)
	}
	return all, entries
}

func ended(all []*heldSession) (which []bool) {
	for _, s := range all {
		which = append(which, s.ended)
	}
	return which
}

func TestSuspended_OldestOfLargestEnds(t *testing.T) {
	for _, c := range []struct {
		name              string
		most, mostOfOwner Amount
		a, b              []bool // which of three of a and one of b end; b is last
	}{
		{"within the bounds", Amount{4, 40}, Amount{3, 30}, []bool{false, false, false}, []bool{false}},
		{"sessions of one owner", Amount{}, Amount{Sessions: 2}, []bool{true, false, false}, []bool{false}},
		{"bytes of one owner", Amount{}, Amount{Bytes: 15}, []bool{true, true, false}, []bool{false}},
		{"sessions in all", Amount{Sessions: 3}, Amount{}, []bool{true, false, false}, []bool{false}},
		{"bytes in all", Amount{Bytes: 39}, Amount{}, []bool{true, false, false}, []bool{false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var w Sessions
			w.Init(c.most, c.mostOfOwner)
			a, entries := suspend(&w, new(quota.Owner), 3, 10)
			b, last := suspend(&w, new(quota.Owner), 1, 10)
			require.Equal(t, c.a, ended(a))
			require.Equal(t, c.b, ended(b))
			for _, e := range append(entries, last...) {
				w.Remove(e)
			}
			sessions, owners := w.Counts()
			require.Zero(t, sessions)
			require.Zero(t, owners)
		})
	}
}

func TestSuspended_Grows(t *testing.T) {
	var w Sessions
	w.Init(Amount{}, Amount{Bytes: 30})
	all, entries := suspend(&w, new(quota.Owner), 3, 10)
	all[2].bytes = 11
	w.Look(entries[2])
	require.Equal(t, []bool{true, false, false}, ended(all))
}

func TestTicket_FormerSecret(t *testing.T) {
	var e Ticket
	first, second, third := NewSecret(), NewSecret(), NewSecret()
	e.Init([16]byte{1}, first, "", nil)
	entitled := func() []bool { return []bool{e.Entitles(first), e.Entitles(second), e.Entitles(third)} }
	require.Equal(t, []bool{true, false, false}, entitled())
	e.Replace(first, second)
	require.Equal(t, []bool{true, true, false}, entitled(), "the peer may not have the second one")
	e.Replace(first, third)
	require.Equal(t, []bool{true, true, true}, entitled(), "either handshake may be the one it continues with")
	e.Settle()
	require.Equal(t, []bool{false, false, true}, entitled())
	require.Equal(t, third, e.Latest())
	require.False(t, e.Entitles([16]byte{}))
}

// stored is the last record.
type stored struct{ Record }

func (s *stored) Put(_ context.Context, r Record) { s.Record = r }
func (s *stored) Remove([16]byte)                 { s.Record = Record{} }

func TestTicket_StoresHashes(t *testing.T) {
	var s stored
	var e Ticket
	first, second := NewSecret(), NewSecret()
	e.Init([16]byte{1}, first, "key", &s)
	e.Replace(first, second)
	until := time.Unix(1, 0)
	e.Store(t.Context(), until)
	require.Equal(t, Record{
		Session: [16]byte{1}, Secret: sha256.Sum256(second[:]), Former: sha256.Sum256(first[:]), Identity: "key", Expires: until,
	}, s.Record)
	e.Forget()
	require.Zero(t, s.Record)
	require.True(t, e.ProvedBy("key"))
	require.False(t, e.ProvedBy(""))
}

func TestPacer_Rate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Pacer
		for range 1024 {
			require.Nil(t, p.Wait(t.Context()))
			p.Spend(0)
		}
		p.Spend(resumeRate)
		begin := time.Now()
		require.Nil(t, p.Wait(t.Context()))
		require.InDelta(t, time.Second, time.Since(begin), float64(10*time.Millisecond))
		p.Spend(resumeRate)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		require.ErrorIs(t, p.Wait(ctx), codec.ErrOverloaded)
	})
}
