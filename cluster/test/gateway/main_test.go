package gateway_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

func TestMain(m *testing.M) { natstest.Main(m) }
