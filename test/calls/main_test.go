package calls

import (
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
