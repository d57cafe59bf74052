package outbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/weightest"
)

// TestLog_Memory has a peer that acknowledges nothing for a while.
func TestLog_Memory(t *testing.T) {
	const blocks, size = 1000, 3000
	k := newKeeper(t, 0)
	k.drain()
	before := weightest.Heap()
	for range blocks {
		k.writing = false
		k.putBlock(size)
		batch, _ := k.Take()
		k.Written(batch)
		k.Take()
	}
	held := weightest.HeldSince(before, blocks*size*3/2)
	require.Greater(t, held, blocks*size, "all of it is kept")
	require.Less(t, held, blocks*size*3/2)
	require.True(t, k.Ack(k.received+1+blocks))
	require.Less(t, weightest.HeldSince(before, 1<<20), 1<<20, "and no acknowledged frame")
	k.Close(nil)
}
