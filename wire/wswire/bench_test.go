//go:build !js

package wswire_test

import (
	"testing"

	"github.com/asterisque-go/asterisque/internal/test/callbench"
)

func BenchmarkCallsOverWebSocket(b *testing.B) {
	callbench.Over(b, "tcp://127.0.0.1:0", "ws://127.0.0.1:0/rpc", "tls://127.0.0.1:0", "wss://127.0.0.1:0/rpc")
}
