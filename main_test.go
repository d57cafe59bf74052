package asterisque_test

import (
	"flag"
	"strconv"
	"testing"

	"github.com/asterisque-go/asterisque/internal/leak"
)

// waits is how many parallel tests run at once: those are parallel that wait.
const waits = 8

func TestMain(m *testing.M) {
	if !flag.Parsed() {
		flag.Parse()
	}
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		p.Value.Set(strconv.Itoa(waits))
	}
	leak.Main(m)
}

// soak lets some tests run as long as their figures ask for.
var soak = flag.Bool("soak", false, "run the long versions of the tests that have one")
