//go:build unix

package restart

import (
	"context"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/wire"
)

// visits are clients that connect, make one call, and disconnect.
type visits struct {
	url  string
	node *asterisque.Node

	mu      sync.Mutex
	served  map[int]int   // guarded by mu: visits by server
	changed chan struct{} // guarded by mu; closed when another server has answered
	failed  []error       // guarded by mu
}

func (v *visits) visit() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	pid := 0
	conn, err := v.node.Connect(ctx, v.url, asterisque.ReconnectConfig{First: 10 * time.Millisecond, Most: 100 * time.Millisecond})
	if err == nil {
		pid, err = work.Call(ctx, conn, 0)
		conn.Close()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if err != nil {
		v.failed = append(v.failed, err)
		return
	}
	if v.served[pid]++; v.served[pid] == 1 {
		close(v.changed)
		v.changed = make(chan struct{})
	}
}

// await waits until a server has served a visit.
func (v *visits) await(t *testing.T, pid int) {
	t.Helper()
	patience := time.After(2 * time.Minute)
	for {
		v.mu.Lock()
		came, changed := v.served[pid] > 0, v.changed
		v.mu.Unlock()
		if came {
			return
		}
		select {
		case <-changed:
		case <-patience:
			require.FailNow(t, "no client visits the server")
		}
	}
}

func TestRestart_NewConnections(t *testing.T) {
	file, handed := socket(t)
	ln, err := wire.Listen(t.Context(), "tcp://127.0.0.1:0", wire.Options{ReusePort: true})
	require.NoError(t, err)
	defer ln.Close() // before any client connects
	for _, test := range []struct {
		name, url, dial string
		files           []*os.File
	}{
		{"a socket that is handed over", inherited, handed, []*os.File{file}},
		{"a port that is shared", ln.URL(), ln.URL(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := start(t, test.url, test.files...)
			require.NoError(t, ln.Close())
			v := &visits{url: test.dial, node: asterisque.NewNode(), served: map[int]int{}, changed: make(chan struct{})}
			ctx, stop := context.WithCancel(t.Context())
			var all sync.WaitGroup
			for range callers {
				all.Go(func() { // ends with ctx
					for ctx.Err() == nil {
						v.visit()
					}
				})
			}
			t.Cleanup(func() { v.node.Close() })
			defer all.Wait()
			defer stop()
			for range replacements {
				v.await(t, server.pid)
				next := start(t, test.url, test.files...)
				server.leaves(syscall.SIGTERM)
				server = next
			}
			v.await(t, server.pid)
			stop()
			all.Wait()
			t.Log("visits by server:", v.served)
			require.Empty(t, v.failed)
		})
	}
}
