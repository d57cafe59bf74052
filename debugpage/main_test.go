package debugpage

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/leak"
	"github.com/asterisque-go/asterisque/wire"
)

func TestMain(m *testing.M) { leak.Main(m) }

// connect returns both ends of a session between two nodes, within this process.
func connect(t *testing.T, here, there *asterisque.Node) (dialled, accepted *asterisque.Session) {
	t.Helper()
	a, b := wire.Pipe()
	accepts := make(chan *asterisque.Session, 1)
	go func() {
		s, _ := there.Accept(context.Background(), b)
		accepts <- s
	}()
	dialled, err := here.Attach(context.Background(), a)
	require.NoError(t, err)
	accepted = <-accepts
	require.NotNil(t, accepted)
	return dialled, accepted
}

// newNode returns a node that is closed with the test.
func newNode(t *testing.T, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}
