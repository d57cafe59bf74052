package interceptors

import (
	"context"
	"strings"
	"testing"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/callbench"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
)

// BenchmarkInterceptedCall is BenchmarkCall with 64 callers, without and with an interceptor on
// each side that only calls next.
func BenchmarkInterceptedCall(b *testing.B) {
	for _, c := range []struct {
		name string
		opts []asterisque.Option
	}{
		{"without", nil},
		{"with", []asterisque.Option{asterisque.WithOutboundInterceptors(testkit.Passes), asterisque.WithInboundInterceptors(testkit.Passes)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			sess, _ := testkit.Connect(b, testkit.EchoService(), c.opts...)
			text := strings.Repeat("*", 64)
			callbench.InParallel(b, 64, func() error {
				_, err := testkit.Echo.Call(context.Background(), sess, text)
				return err
			})
		})
	}
}
