package resume

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
	"github.com/asterisque-go/asterisque/wire/wiretest"
)

// TestResume_RefusedUnexplained requires that a peer whose resume does not match gets a new
// session, without the reason.
func TestResume_RefusedUnexplained(t *testing.T) {
	for _, c := range []struct {
		name    string
		spoil   func(*message.Sync)
		after   time.Duration
		resumed bool
	}{
		{"all fits", func(*message.Sync) {}, 0, true},
		{"all fits, at the last moment", func(*message.Sync) {}, time.Minute - time.Millisecond, true},
		{"it is too late", func(*message.Sync) {}, time.Minute + time.Millisecond, false},
		{"another secret", func(h *message.Sync) { h.Secret = bytes.Clone(h.Secret); h.Secret[15] ^= 1 }, 0, false},
		{"no secret", func(h *message.Sync) { h.Secret = nil }, 0, false},
		{"a session that never was", func(h *message.Sync) { h.Session = bytes.Clone(h.Session); h.Session[0] ^= 1 }, 0, false},
		{"more received than was sent", func(h *message.Sync) { h.Received = 1000 }, 0, false},
		{"less received than was acknowledged", func(h *message.Sync) { h.Received = 1 }, 0, false},
		{"with another feature, which was not there before", func(h *message.Sync) { h.Features |= message.FeatureMetadata }, 0, false},
		{"without the feature", func(h *message.Sync) { h.Features = 0 }, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := asterisque.NewNode(asterisque.WithService(testkit.EchoService()), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
				defer node.Close()
				p, first := testkit.RawTo(t, node, testkit.Resumable())
				require.Len(t, first.Session, message.SessionSize)
				require.Len(t, first.Secret, message.SecretSize)
				for i := range uint64(3) {
					p.Send(&message.Open{Pipe: 2 * i, Function: 10, Params: []byte{0x61, 'x'}})
					p.Answer()
				}
				p.Send(message.Ack{Count: 2})
				synctest.Wait()
				p.W.Close()
				synctest.Wait()
				fakeclock.Sleep(c.after)
				synctest.Wait()
				h := testkit.Resuming(first, 2)
				c.spoil(&h)
				q, second := testkit.RawTo(t, node, h)
				defer q.W.Close()
				if c.resumed {
					require.Equal(t, first.Session, second.Session)
					require.Len(t, second.Secret, message.SecretSize)
					require.NotEqual(t, first.Secret, second.Secret, "for the next time")
					require.EqualValues(t, 3, second.Received)
					require.EqualValues(t, 4, q.Answer().Pipe, "what the peer lacks comes first")
					return
				}
				require.NotEqual(t, first.Session, second.Session)
				require.NotEqual(t, first.Secret, second.Secret)
				fresh := first
				if h.Features == 0 {
					fresh.Secret = nil
				} else {
					require.Len(t, second.Secret, message.SecretSize)
				}
				second.Session, fresh.Session, second.Secret, fresh.Secret = nil, nil, nil, nil
				require.Equal(t, fresh, second, "it looks like any new session")
				q.Send(&message.Open{Pipe: 0, Function: 10, Params: []byte{0x61, 'x'}})
				require.EqualValues(t, 0, q.Answer().Pipe, "and is one")
			})
		})
	}
}

// countService offers function 50, which counts its runs.
func countService() (svc *asterisque.Service, ran *atomic.Int64) {
	svc, ran = asterisque.NewService(), new(atomic.Int64)
	svc.Handle(50, "count", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) {
		ran.Add(1)
		return nil, nil
	})
	return svc, ran
}

// TestResume_OldWireIgnored requires that frames in flight on the old wire are ignored once the
// session has resumed over another wire.
func TestResume_OldWireIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, ran := countService()
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}))
		defer node.Close()
		p, first := testkit.RawTo(t, node, testkit.Resumable())
		p.Send(&message.Open{Pipe: 0, Function: 50})
		p.Answer()
		old := p.W.(*wiretest.Wire)
		old.Stall()
		// The goroutine ends with the wire.
		go p.W.WriteFrames([][]byte{(&message.Open{Pipe: 2, Function: 50}).AppendTo(nil), (&message.Open{Pipe: 4, Function: 50}).AppendTo(nil)})
		synctest.Wait()

		// The node still considers the old wire valid.
		q, second := testkit.RawTo(t, node, testkit.Resuming(first, 1))
		require.Equal(t, first.Session, second.Session)
		require.EqualValues(t, 1, second.Received)
		old.Heal()
		synctest.Wait()
		require.EqualValues(t, 1, ran.Load(), "of what was under way nothing is run")
		for _, err := p.W.ReadFrame(1 << 20); err == nil; _, err = p.W.ReadFrame(1 << 20) {
			// Reads to the end of the wire, which has been closed.
		}

		q.Send(&message.Open{Pipe: 2, Function: 50}, &message.Open{Pipe: 4, Function: 50})
		q.Answer()
		q.Answer()
		require.EqualValues(t, 3, ran.Load(), "what is sent again is run")
		synctest.Wait()
		require.Len(t, node.Sessions(), 1)
	})
}

// TestResume_OnlyByReconnect uses Dial, which never reconnects.
func TestResume_OnlyByReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, started, _ := testkit.BlockService()
		here, there := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute})), asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithService(svc))
		defer here.Close()
		defer there.Close()
		l := &testkit.Links{To: there}
		w, err := l.Dial(testkit.Background)
		require.NoError(t, err)
		s, err := here.Attach(testkit.Background, w)
		require.NoError(t, err)
		call := make(chan error)
		go func() { _, err := testkit.Block.Call(testkit.Background, s, ""); call <- err }()
		<-started
		begin := time.Now()
		l.Cut()
		require.ErrorIs(t, <-call, asterisque.ErrSessionClosed)
		synctest.Wait()
		require.Empty(t, there.Sessions(), "on neither side it waits for the other")
		require.Zero(t, time.Since(begin))
	})
}

// repository is a Repository that can fail and that records its parameters.
type repository struct {
	asterisque.Repository
	fail atomic.Bool
	last atomic.Pointer[asterisque.SessionRecord]
}

func (r *repository) Put(ctx context.Context, record asterisque.SessionRecord) error {
	if r.fail.Load() {
		return testkit.ErrBroken
	}
	r.last.Store(&record)
	return r.Repository.Put(ctx, record)
}

func (r *repository) Get(ctx context.Context, id asterisque.SessionID) (asterisque.SessionRecord, bool, error) {
	if r.fail.Load() {
		return asterisque.SessionRecord{}, false, testkit.ErrBroken
	}
	return r.Repository.Get(ctx, id)
}

func (r *repository) Delete(ctx context.Context, id asterisque.SessionID) error {
	if r.fail.Load() {
		return testkit.ErrBroken
	}
	return r.Repository.Delete(ctx, id)
}

// A repository that fails prevents only the resume.
func TestRepository_Fails(t *testing.T) {
	for name, failing := range map[string]func(r *repository){
		"it works":             func(*repository) {},
		"it fails":             func(r *repository) { r.fail.Store(true) },
		"it has lost its data": func(r *repository) { r.Repository = asterisque.NewRepository() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &repository{Repository: asterisque.NewRepository()}
				if name == "it fails" {
					failing(r)
				}
				conn, l, _, there := testkit.Link(t, testkit.EchoService(), asterisque.ReconnectConfig{}, asterisque.WithResume(asterisque.Resume{For: time.Minute, Records: r}))
				_, err := testkit.Echo.Call(testkit.Background, conn, "x")
				require.NoError(t, err)
				before := conn.Session()
				if name == "it has lost its data" {
					for _, s := range there.Sessions() {
						require.NoError(t, r.Delete(testkit.Background, s.ID()))
					}
				}
				l.Cut()
				if name == "it has lost its data" { // the session stores it again when it goes away
					synctest.Wait()
				}
				_, err = testkit.Echo.Call(testkit.Background, conn, "x")
				if name == "it fails" && errors.Is(err, asterisque.ErrUnavailable) {
					// The call was made on the old session.
					_, err = testkit.Echo.Call(testkit.Background, conn, "x")
				}
				require.NoError(t, err)
				if name == "it fails" {
					require.NotSame(t, before, conn.Session())
				} else {
					require.Same(t, before, conn.Session())
				}
			})
		})
	}
}

// A record holds no secret, and is removed with its session.
func TestRecord_NoSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &repository{Repository: asterisque.NewRepository()}
		node := asterisque.NewNode(asterisque.WithID("b"), asterisque.WithResume(asterisque.Resume{For: time.Minute, Records: r}))
		defer node.Close()
		p, first := testkit.RawTo(t, node, testkit.Resumable())
		synctest.Wait()
		record := r.last.Load()
		require.Equal(t, first.Session, record.Session[:])
		require.Equal(t, "b", record.Node)
		require.True(t, record.Expires.IsZero(), "it has a wire")
		require.NotContains(t, string(record.Secret[:]), string(first.Secret))
		text, err := json.Marshal(record)
		require.NoError(t, err)
		var again asterisque.SessionRecord
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, *record, again)

		p.W.Close()
		synctest.Wait()
		require.Equal(t, time.Now().Add(time.Minute), r.last.Load().Expires, "it is away")
		q, _ := testkit.RawTo(t, node, testkit.Resuming(first, 0))
		synctest.Wait()
		require.True(t, r.last.Load().Expires.IsZero(), "it is back")
		q.Send(message.SessionClose{Code: codec.SessionClosed})
		synctest.Wait()
		require.Empty(t, node.Sessions())
		_, ok, err := r.Get(testkit.Background, record.Session)
		require.NoError(t, err)
		require.False(t, ok)
	})
}

// A repository removes expired records.
func TestRepository_Expires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := asterisque.NewRepository()
		put := func(id byte, expires time.Time) {
			require.NoError(t, r.Put(testkit.Background, asterisque.SessionRecord{Session: asterisque.SessionID{id}, Expires: expires}))
		}
		has := func(id byte) bool {
			record, ok, err := r.Get(testkit.Background, asterisque.SessionID{id})
			require.NoError(t, err)
			require.Equal(t, ok, record.Session == asterisque.SessionID{id})
			return ok
		}
		put(1, time.Time{})
		put(2, time.Now().Add(time.Minute))
		require.True(t, has(1))
		require.True(t, has(2))
		require.False(t, has(3))
		fakeclock.Sleep(time.Minute)
		require.True(t, has(1), "a session that has its wire does not expire")
		require.False(t, has(2))
		put(2, time.Now().Add(time.Minute))
		require.True(t, has(2), "stored again")
		for id := range byte(100) {
			put(10+id, time.Now().Add(time.Second))
		}
		fakeclock.Sleep(time.Minute)
		put(3, time.Time{})
		for _, id := range []byte{10, 50, 109} {
			require.False(t, has(id))
		}
		require.NoError(t, r.Delete(testkit.Background, asterisque.SessionID{1}))
		require.NoError(t, r.Delete(testkit.Background, asterisque.SessionID{1}), "it is gone already")
		require.False(t, has(1))
		require.True(t, has(3))
	})
}
