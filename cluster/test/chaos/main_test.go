//go:build unix

package chaos

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

var (
	trouble   = flag.Duration("chaos", 5*time.Second, "for how long there is trouble")
	soak      = flag.Bool("soak", false, "run the long versions of the tests that have one")
	drawnFrom = flag.Uint64("chaos.seed", 0, "what the trouble is drawn from; 0: another number each time")
)

// TestMain runs the tests, or the part that this process is.
func TestMain(m *testing.M) {
	if name := os.Getenv(partOf); name != "" {
		os.Exit(runPart(name))
	}
	leak.Main(m)
}
