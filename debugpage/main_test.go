package debugpage

import (
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

// newNode returns a node that is closed with the test.
func newNode(t *testing.T, opts ...asterisque.Option) *asterisque.Node {
	n := asterisque.NewNode(opts...)
	t.Cleanup(func() { n.Close() })
	return n
}
