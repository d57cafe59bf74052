package asterisque_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
