package calls

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/asterisquetest"
	"github.com/asterisque-go/asterisque/internal/test/fakeclock"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestTurns_QuietSession fails if a session may wait in more than one place for the workers of the
// node: a busy session would then get more turns the longer it is busy.
func TestTurns_QuietSession(t *testing.T) {
	const takes, workers, busy = 2 * time.Millisecond, 4, 3
	synctest.Test(t, func(t *testing.T) {
		work := asterisque.Func[int, int](20, "work")
		svc := asterisque.NewService()
		work.Handle(svc, func(ctx context.Context, n int) (int, error) {
			select {
			case <-time.After(takes):
			case <-ctx.Done():
			}
			return n, nil
		})
		here, there := asterisque.NewNode(), asterisque.NewNode(asterisque.WithService(svc), asterisque.WithWorkers(asterisque.Workers{Node: workers}))
		defer there.Close()
		defer here.Close()
		connect := func() *asterisque.Session {
			s, _ := asterisquetest.ConnectNodes(t, here, there)
			return s
		}
		ctx, stop := context.WithCancel(testkit.Background)
		var callers sync.WaitGroup
		defer callers.Wait()
		defer stop()
		for range busy {
			s := connect()
			for range 100 {
				callers.Go(func() {
					for ctx.Err() == nil {
						work.Call(ctx, s, 1)
					}
				})
			}
		}
		quiet := connect()
		for range 200 {
			fakeclock.Sleep(20 * time.Millisecond)
			begin := time.Now()
			_, err := work.Call(testkit.Background, quiet, 1)
			require.NoError(t, err)
			require.LessOrEqual(t, time.Since(begin), 3*takes, "its own time, and at most a turn of each other session")
			require.LessOrEqual(t, there.Stats().Crowded, busy+1, "each session waits in one place")
		}
	})
}
