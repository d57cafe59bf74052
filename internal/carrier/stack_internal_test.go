package carrier

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/wire"
)

// TestRest_LookDuringWake looks at a reader repeatedly, even while the reader is being woken.
func TestRest_LookDuringWake(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	there, err := net.Dial("tcp", ln.Addr().String())
	require.NoError(t, err)
	defer there.Close()
	here, err := ln.Accept()
	require.NoError(t, err)
	w := wire.FromConn(here)
	defer w.Close()
	var r stackShrinker
	r.fresh.Store(1) // frames have arrived since
	var over atomic.Bool
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		for !over.Load() {
			r.look(w, 0)
			runtime.Gosched() // this many times is enough
		}
	}()
	for range 20_000 {
		_, err := w.ReadFrame(1 << 10)
		if !r.woken(w, err) {
			t.Errorf("the reader takes a wake for the end: %v", err)
			break
		}
	}
	over.Store(true)
	<-looked
}
