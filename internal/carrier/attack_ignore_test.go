package carrier_test

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/codec/message"
	"github.com/asterisque-go/asterisque/internal/carrier"
)

// An application calls Stop just before the last Block of the peer is complete. The result follows
// in parts, and begins before Stop has called Ignore.
func TestIgnore_ResultBehindBlock(t *testing.T) {
	r := newRig(t, nil)
	r.run()
	block, result := inParts(1, 1024, blockOf(1, 2000)), inParts(1, 1024, resultOf(1, 2000))
	r.wire.says(block[0], block[1], result[0])
	r.wantStory("Block begins", "Block", "Close begins")
	r.Ignore(1) // the Block, of which parts were missing when Stop was called
	r.wire.says(result[1])
	r.wire.says(inParts(3, 1024, resultOf(3, 2000))[0])
	r.wantStory("Block begins", "Block", "Close begins", "Close", "Close begins")
	require.NoError(t, r.ctx.Err())
}

// An application calls Stop while the reader processes a part. The race detector decides.
func TestIgnore_WhilePartsArrive(t *testing.T) {
	r := newRig(t, nil)
	r.up.blockPart = func(uint64, int) (int, carrier.Admission) {
		for range 100 { // gives the other goroutine a turn, and orders nothing
			runtime.Gosched()
		}
		return math.MaxInt, carrier.Admitted
	}
	last := make(chan struct{})
	r.up.receive = func(m message.Type, _ []byte) error {
		if m == message.OpenType {
			close(last)
		}
		return nil
	}
	r.run()
	var begun, done atomic.Bool
	var stopping sync.WaitGroup
	stopping.Go(func() {
		begun.Store(true)
		for !done.Load() {
			r.Ignore(1)
			runtime.Gosched()
		}
	})
	for !begun.Load() {
		runtime.Gosched()
	}
	for range 5 {
		for _, p := range inParts(1, 1024, blockOf(1, 5000)) {
			r.wire.says(p)
		}
	}
	r.wire.says(open(3))
	<-last
	done.Store(true)
	stopping.Wait()
}
