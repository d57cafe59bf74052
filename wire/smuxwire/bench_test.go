package smuxwire_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/callbench"
)

func BenchmarkCallsOverSmux(b *testing.B) {
	callbench.Over(b, "tcp://127.0.0.1:0", "smux://127.0.0.1:0", "tls://127.0.0.1:0", "smux+tls://127.0.0.1:0")
}
