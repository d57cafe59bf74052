// Package natstest has NATS servers for tests of packages that use NATS: in a bubble of synctest
// ([Bubble]), where leases and times to live take no real time, or with a port. [FaultyKV] is a
// bucket whose writes fail on demand, and [Child] a process of its own that a test can pause or
// kill. The TestMain of a package that uses them calls [Main].
package natstest

import (
	"flag"
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

// atOnce is the default of -parallel: tests outside of bubbles wait for NATS, which detects some
// events slowly.
const atOnce = "16"

// Main runs the tests of a package, several at once, and requires that no goroutine is left.
func Main(m *testing.M) {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said {
		flag.Set("test.parallel", atOnce) // the testing package has it
	}
	leak.Main(m)
}
