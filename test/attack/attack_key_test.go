package attack

import (
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
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// TestAttackKey_BlocksItself repeats a call in another session, and ends the first session, so that
// the repetition replaces the call. The key function then blocks or ends its goroutine; the session
// ends nevertheless.
func TestAttackKey_BlocksItself(t *testing.T) {
	for name, exits := range map[string]bool{"blocks": false, "exits": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				goOn, running, asked := make(chan struct{}), make(chan struct{}, 1), make(chan struct{}, 1)
				var armed atomic.Bool
				svc := asterisque.NewService()
				testkit.Work.Handle(svc, func(context.Context, int) (int, error) {
					running <- struct{}{}
					<-goOn
					return 0, nil
				}, asterisque.WithKey(func(int) int {
					if armed.Swap(false) {
						asked <- struct{}{}
						if exits {
							runtime.Goexit()
						}
						<-goOn
					}
					return 0
				}))
				node := asterisque.NewNode(asterisque.WithService(svc), testkit.Named())
				t.Cleanup(func() { node.Close() })
				p, _ := testkit.RawTo(t, node, testkit.HelloOf("a"))
				testkit.Settled(t, func() bool { return len(node.Sessions()) == 1 })
				first := node.Sessions()[0]
				p.Send(testkit.Keyed(0, "busy"), testkit.Keyed(2, "waits"))
				<-running
				testkit.Settled(t, func() bool { return first.Stats().Waiting == 1 })
				q, _ := testkit.RawTo(t, node, testkit.HelloOf("a"))
				q.Send(testkit.Keyed(0, "waits"), message.Ping{N: 1})
				q.Control() // the repetition has arrived
				go p.Swallow()

				armed.Store(true)
				closed := make(chan struct{})
				go func() {
					defer close(closed)
					first.Close()
				}()
				<-asked
				select {
				case <-first.Done():
					<-closed
				case <-time.After(10 * time.Second):
					require.Fail(t, "the session does not end")
				}
				if exits {
					require.Equal(t, codec.Panicked, q.Answer().Abort.Code)
				}
				close(goOn)
				testkit.Settled(t, func() bool { st := node.Stats(); return st.Busy == 0 && st.Total.Waiting == 0 })
			})
		})
	}
}
