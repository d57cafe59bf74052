//go:build unix

package restart

import (
	"os"
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) {
	if url, ok := os.LookupEnv(serverVariable); ok {
		serve(url)
	}
	leak.Main(m)
}
