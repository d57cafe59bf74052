package cluster

import (
	"flag"
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

// atOnce is the default of -parallel: tests outside of bubbles wait for NATS, which detects some
// events slowly.
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
