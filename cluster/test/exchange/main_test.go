package exchange_test

import (
	"os"
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/leak"
)

func TestMain(m *testing.M) {
	if os.Getenv(aloneEnv) != "" {
		runAlone(os.Stdin, os.Stdout)
		return
	}
	leak.Main(m)
}
