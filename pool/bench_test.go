package pool_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/callbench"
	"github.com/asterisque-go/asterisque/pool"
)

var echo = asterisque.Func[string, string](2, "echo")

// BenchmarkCall measures echoes of 64 bytes by 64 callers, on a bare session, on a Connection, and
// on pools of one and of three servers, all in this process.
func BenchmarkCall(b *testing.B) {
	var urls []string
	for _, name := range []string{"a", "b", "c"} {
		s := newServer(b, name)
		s.kill()
		s.svc = asterisque.NewService()
		echo.Handle(s.svc, func(_ context.Context, s string) (string, error) { return s, nil })
		s.start()
		urls = append(urls, s.url)
	}
	here := asterisque.NewNode()
	b.Cleanup(func() { here.Close() })
	session, err := here.Dial(background, urls[0])
	require.NoError(b, err)
	conn, err := here.Connect(background, urls[0], asterisque.ReconnectConfig{})
	require.NoError(b, err)
	one, three := newPool(b, urls[:1], pool.Config{}), newPool(b, urls, pool.Config{})
	text := strings.Repeat("*", 64)
	for _, c := range []struct {
		name string
		on   asterisque.Caller
	}{{"session", session}, {"connection", conn}, {"pool of one", one}, {"pool of three", three}} {
		b.Run(c.name, func(b *testing.B) {
			callbench.InParallel(b, 64, func() error {
				_, err := echo.Call(background, c.on, text)
				return err
			})
		})
	}
}
