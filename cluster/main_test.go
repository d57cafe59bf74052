package cluster

import (
	"flag"
	"testing"

	"github.com/asterisque-go/asterisque/internal/leak"
)

// atOnce is how many tests run at the same time, unless -parallel says otherwise: those outside of
// bubbles wait for NATS, which takes its time to notice things.
const atOnce = "16"

func TestMain(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		flag.Set("test.parallel", atOnce) // the testing package has it
	}
	leak.Main(m)
}
