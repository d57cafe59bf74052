//go:build unix

package restart

import (
	"flag"
	"os"
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) {
	if url, ok := os.LookupEnv(serverVariable); ok {
		serve(url)
	}
	flag.Parse()
	flag.Set("test.parallel", "8") // the tests wait more than they work
	leak.Main(m)
}
