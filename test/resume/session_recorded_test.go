package resume

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// heldRepository is a Repository that reports each Put, and waits for goOn before it stores
// something. It counts its records.
type heldRepository struct {
	asterisque.Repository
	puts chan asterisque.SessionID
	goOn chan struct{}

	mu  sync.Mutex
	has map[asterisque.SessionID]struct{} // guarded by mu
}

func newHeldRepository() *heldRepository {
	return &heldRepository{
		Repository: asterisque.NewRepository(), puts: make(chan asterisque.SessionID, 1), goOn: make(chan struct{}),
		has: make(map[asterisque.SessionID]struct{}),
	}
}

func (r *heldRepository) Put(ctx context.Context, record asterisque.SessionRecord) error {
	r.puts <- record.Session
	<-r.goOn
	r.mu.Lock()
	defer r.mu.Unlock()
	r.has[record.Session] = struct{}{}
	return r.Repository.Put(ctx, record)
}

func (r *heldRepository) Delete(ctx context.Context, id asterisque.SessionID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.has, id)
	return r.Repository.Delete(ctx, id)
}

// TestRecord_BeforeSession matters if the peer loses the Wire at once, and comes back through
// another node: the record is there before the peer knows of the session.
func TestRecord_BeforeSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newHeldRepository()
		node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute, Records: store}))
		defer node.Close()
		p, _ := testkit.PipeAccepted(t, node)
		p.Send(testkit.Resumable())
		id := <-store.puts
		answer := make(chan message.Control)
		go func() { answer <- p.Control() }() // ends with the handshake
		synctest.Wait()
		require.Empty(t, node.Sessions())
		select {
		case <-answer:
			require.Fail(t, "the peer knows of the session")
		default:
		}
		close(store.goOn)
		reply, ok := (<-answer).(message.Sync)
		require.True(t, ok)
		require.Equal(t, id[:], reply.Session)
		_, found, err := store.Get(t.Context(), id)
		require.NoError(t, err)
		require.True(t, found)
	})
}

// A session that does not begin leaves no record.
func TestRecord_FailedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newHeldRepository()
		node := asterisque.NewNode(asterisque.WithResume(asterisque.Resume{For: time.Minute, Records: store}))
		defer node.Close()
		p, over := testkit.PipeAccepted(t, node)
		p.Send(testkit.Resumable())
		<-store.puts
		require.NoError(t, p.W.Close())
		close(store.goOn)
		<-over
		require.Empty(t, node.Sessions())
		require.Empty(t, store.has)
	})
}
