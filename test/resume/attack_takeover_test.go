package resume

import (
	"bytes"
	"context"
	"runtime"
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
	"github.com/asterisque-go/asterisque/wire"
)

// TestAttackResume_OldSecret delays the handshake of a resume until the peer has resumed over
// another wire, and requires that the first handshake fails, because its secret is no longer valid.
func TestAttackResume_OldSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testkit.NewDoorkeeper(t)
		p, first := k.Begins(t)
		p.W.Close()
		synctest.Wait()
		late, release := k.HeldUpAtTheDoor(t, first)
		q, second := k.Resumes(t, first)
		require.Equal(t, first.Session, second.Session)
		q.Send(message.Ping{})
		synctest.Wait()
		release()
		require.NotEqual(t, first.Session, late.Control().(message.Sync).Session, "the peer has the next secret by now")
		q.Echoes(2)
	})
}

// TestTakeover_LateHandshake requires that an honest peer whose earlier handshake is late can still
// resume.
func TestTakeover_LateHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testkit.NewDoorkeeper(t)
		p, first := k.Begins(t)
		p.W.Close()
		synctest.Wait()
		_, release := k.HeldUpAtTheDoor(t, first)
		q, second := k.Resumes(t, first)
		require.Equal(t, first.Session, second.Session)
		release()
		q.W.Close()
		synctest.Wait()
		r, third := k.Resumes(t, second)
		require.Equal(t, first.Session, third.Session, "the latest secret that the peer has is good")
		r.Echoes(2)
		_, fourth := k.Resumes(t, first)
		require.NotEqual(t, first.Session, fourth.Session, "and those before are not, once something has come")
		r.Echoes(4)
	})
}

// TestTakeover_LostAnswers requires that a peer that has never read an answer can still resume,
// with either of its two possible secrets.
func TestTakeover_LostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testkit.NewDoorkeeper(t)
		p, first := k.Begins(t)
		p.W.Close()
		for n := range 100 {
			synctest.Wait()
			q := testkit.PipeTo(t, k.Node)
			q.Send(testkit.Resuming(first, 1))
			if n%2 == 0 {
				synctest.Wait() // it is written, and not read
			}
			q.W.Close()
		}
		synctest.Wait()
		q, second := k.Resumes(t, first)
		require.Equal(t, first.Session, second.Session)
		q.W.Close()
		synctest.Wait()
		r, third := k.Resumes(t, second)
		require.Equal(t, first.Session, third.Session)
		r.Echoes(2)
	})
}

// TestTakeover_LongWait requires that a peer that reconnects at once after a large resend is
// refused, and keeps its session: a later attempt succeeds.
func TestTakeover_LongWait(t *testing.T) {
	testkit.SkipRace(t)
	const size = 1 << 20
	synctest.Test(t, func(t *testing.T) {
		svc := asterisque.NewService()
		svc.Handle(60, "large", func(context.Context, *pipe.Pipe, []byte) ([]byte, error) { return make([]byte, size-1000), nil })
		node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithResume(asterisque.Resume{For: time.Minute}), asterisque.WithTimeouts(asterisque.Timeouts{Ping: -1}),
			asterisque.WithLimits(asterisque.Limits{Outbound: testkit.BytesOf(300<<20, 400<<20)}))
		defer node.Close()
		h := testkit.Resumable()
		h.MaxMessage = 2 * size
		p, first := testkit.RawTo(t, node, h)
		first.Session, first.Secret = bytes.Clone(first.Session), bytes.Clone(first.Secret)
		for n := range uint64(192) { // which take 12 seconds
			p.Send(&message.Open{Pipe: 2 * n, Function: 60})
			p.Answer()
		}
		p.W.Close()
		synctest.Wait()
		again := testkit.Resuming(first, 0)
		again.MaxMessage = 2 * size
		q, second := testkit.RawTo(t, node, again)
		require.Equal(t, first.Session, second.Session)
		again.Secret = bytes.Clone(second.Secret)
		q.W.Close()
		synctest.Wait()
		r := testkit.PipeTo(t, node)
		r.Send(again)
		r.WantSessionClose(codec.Overloaded, "resumed too often")
		fakeclock.Sleep(20 * time.Second)
		_, third := testkit.RawTo(t, node, again)
		require.Equal(t, first.Session, third.Session, "it may come back later")
	})
}

// TestTakeover_TemporaryRefusal uses an application that cannot decide about the peer: the session
// stays.
func TestTakeover_TemporaryRefusal(t *testing.T) {
	for name, refuse := range map[string]func(k *testkit.Doorkeeper){
		"the database does not answer": func(k *testkit.Doorkeeper) { k.Grants(nil, testkit.ErrBroken) },
		"there is too much to do":      func(k *testkit.Doorkeeper) { k.Grants(nil, codec.ErrOverloaded.Withf("later")) },
		"it panics": func(k *testkit.Doorkeeper) {
			f := func(asterisque.Peer) (*asterisque.Grant, error) { panic("broken") }
			k.Answer.Store(&f)
		},
		"it does not return in time": func(k *testkit.Doorkeeper) {
			f := func(asterisque.Peer) (*asterisque.Grant, error) {
				fakeclock.Sleep(10 * time.Second)
				return nil, nil
			}
			k.Answer.Store(&f)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := testkit.NewDoorkeeper(t)
				p, first := k.Begins(t)
				p.W.Close()
				synctest.Wait()
				refuse(k)
				q := testkit.PipeTo(t, k.Node)
				q.Send(testkit.Resuming(first, 1))
				require.IsType(t, message.SessionClose{}, q.Control())
				fakeclock.Sleep(10 * time.Second)
				k.Grants(&asterisque.Grant{}, nil)
				r, second := k.Resumes(t, first)
				require.Equal(t, first.Session, second.Session)
				r.Echoes(2)
			})
		})
	}
}

// slowRepository is a Repository with a Put that blocks while slow is set.
type slowRepository struct {
	asterisque.Repository
	slow atomic.Bool
}

func (r *slowRepository) Put(ctx context.Context, record asterisque.SessionRecord) error {
	if r.slow.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return r.Repository.Put(ctx, record)
}

// TestRepository_Slow requires that no session is lost if the Repository returns outdated records,
// and later none in time.
func TestRepository_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowRepository{Repository: asterisque.NewRepository()}
		k := testkit.NewDoorkeeper(t, asterisque.WithResume(asterisque.Resume{Records: store}))
		p, first := k.Begins(t)
		store.slow.Store(true)
		p.W.Close()
		fakeclock.Sleep(10 * time.Second)
		for n := range uint64(3) {
			q, next := k.Resumes(t, first)
			require.Equal(t, first.Session, next.Session)
			first.Secret = next.Secret
			if n != 1 {
				q.Echoes(2 + 2*n)
			}
			q.W.Close()
			fakeclock.Sleep(20 * time.Second) // until it is away
		}
	})
}

// lyingRepository returns the record of another session.
type lyingRepository struct{ asterisque.Repository }

func (r lyingRepository) Get(ctx context.Context, session asterisque.SessionID) (asterisque.SessionRecord, bool, error) {
	return asterisque.SessionRecord{Session: asterisque.SessionID{1}, Identity: "somebody", Node: "elsewhere"}, true, nil
}

// A repository with wrong records admits no peer.
func TestRepository_Wrong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := testkit.NewDoorkeeper(t, asterisque.WithResume(asterisque.Resume{Records: lyingRepository{asterisque.NewRepository()}}))
		_, first := k.Begins(t)
		h := first
		h.Secret = make([]byte, message.SecretSize)
		_, second := k.Resumes(t, h)
		require.NotEqual(t, first.Session, second.Session)
	})
}

// brokenWire blocks in writing.
type brokenWire struct {
	wire.Wire
	broken func()
}

func (w brokenWire) WriteFrames([][]byte) error { w.broken(); return nil }

// TestAttackResume_BrokenWire breaks the wire while the answer to a resume is written.
func TestAttackResume_BrokenWire(t *testing.T) {
	for name, broken := range map[string]func(){
		"it panics":             func() { panic("broken") },
		"it ends its goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := testkit.NewDoorkeeper(t)
				p, first := k.Begins(t)
				p.W.Close()
				synctest.Wait()
				a, b := wire.Pipe()
				// The goroutine ends with the handshake.
				go k.Node.Accept(testkit.Background, brokenWire{b, broken})
				(&testkit.RawPeer{T: t, W: a}).Send(testkit.Resuming(first, 1))
				synctest.Wait()
				_, err := a.ReadFrame(1 << 10)
				require.Error(t, err, "it is closed")
				q, second := k.Resumes(t, first)
				require.Equal(t, first.Session, second.Session)
				q.Echoes(2)
				q.W.Close()
				synctest.Wait()
				k.Node.Close() // which waits for all sessions
				require.Empty(t, k.Node.Sessions())
			})
		})
	}
}

// panickingWire panics in its method Private.
type panickingWire struct{ wire.Wire }

func (panickingWire) Private() bool { panic("broken") }

// A Wire that panics in Private fails the attempt.
func TestTakeover_PanickingWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := testkit.NewNode(t, asterisque.WithResume(asterisque.Resume{For: time.Minute}))
		ctx, stop := context.WithTimeout(testkit.Background, time.Minute)
		defer stop()
		_, err := here.Connect(ctx, "", asterisque.ReconnectConfig{Dial: func(context.Context) (wire.Wire, error) {
			a, b := wire.Pipe()
			b.Close()
			return panickingWire{a}, nil
		}})
		require.Error(t, err)
	})
}
