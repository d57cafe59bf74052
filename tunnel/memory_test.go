//go:build !race

// The race detector allocates memory for every object, so this file is not built with it.

package tunnel_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/tunnel"
)

// An idle connection holds little memory.
func TestConn_IdleMemory(t *testing.T) {
	const conns, most = 500, 16 << 10 // bytes: both ends, and the handler's goroutine
	svc := asterisque.NewService()
	ln := tunnel.Listen(svc, number, "test")
	s, _ := overTCP(t, svc)
	pair(t, s, ln)
	before := held()
	content, room := make([]byte, 64<<10), make([]byte, 64<<10)
	for range conns {
		a, b := pair(t, s, ln)
		for range 3 { // and it does so after large Writes
			go a.Write(content)
			for got := 0; got < len(content); {
				n, err := b.Read(room)
				require.NoError(t, err)
				got += n
			}
		}
	}
	each := (held() - before) / conns
	for end := time.Now().Add(hangs); each >= most && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // goroutines may still be about to end
		each = (held() - before) / conns
	}
	t.Logf("%d bytes for both ends of an idle connection", each)
	require.Less(t, each, int64(most))
}

// held returns the number of bytes in use, including stacks.
func held() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}
