package exchange_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
