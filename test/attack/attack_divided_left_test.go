package attack

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// receiverLeaves opens stream i with a Block of almost 4 MiB. The receiver waits for the Block, and
// leaves before its end.
func (d *dividing) receiverLeaves(t *testing.T, i uint64) {
	b := d.opens(2*i, 62, 4<<20-2000)
	synctest.Wait()
	held := d.node.Stats().Total.Inbound
	require.Len(t, d.handlers, 1, "the session does not read the Open of stream %d: %v wait", i, held)
	p := <-d.handlers
	ctx, leave := context.WithCancel(testkit.Background)
	left := make(chan struct{})
	go func() { p.Recv(ctx); close(left) }()
	synctest.Wait()
	leave()
	<-left
	b.completes()
	synctest.Wait()
}

// Applications stop receiving after their Blocks have got credit, one after the other. The Blocks
// move into the room for running calls, and the session still reads everything.
func TestDivided_ReceiversLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDividing(t)
		for i := range uint64(12) {
			d.receiverLeaves(t, i)
		}
	})
}
