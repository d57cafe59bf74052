package calls

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/internal/test/callbench"
	"github.com/asterisque-go/asterisque/internal/test/race"
	"github.com/asterisque-go/asterisque/internal/test/testkit"
	"github.com/asterisque-go/asterisque/pipe"
)

// BenchmarkServe measures 64-byte calls of 64 callers to a function that returns at once, with each
// option of a function.
func BenchmarkServe(b *testing.B) {
	for _, c := range []struct {
		name string
		opts []asterisque.HandlerOption
	}{
		{"plain", nil},
		{"keyed", []asterisque.HandlerOption{asterisque.WithKey(func(params []byte) [8]byte { return [8]byte(params) })}},
		{"bounded", []asterisque.HandlerOption{asterisque.WithConcurrency(1000)}},
		{"bounded=8", []asterisque.HandlerOption{asterisque.WithConcurrency(8)}},
		{"inline", []asterisque.HandlerOption{asterisque.WithInline()}},
	} {
		b.Run(c.name, func(b *testing.B) {
			svc := asterisque.NewService()
			svc.Handle(5, "raw", func(_ context.Context, _ *pipe.Pipe, params []byte) ([]byte, error) { return params, nil }, c.opts...)
			sess, _ := testkit.Connect(b, svc)
			var next atomic.Uint32
			callbench.InParallel(b, 64, func() error {
				params := [64]byte{}
				n := next.Add(1)
				params[0], params[1], params[2], params[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
				_, err := sess.Call(context.Background(), 5, params[:])
				return err
			})
		})
	}
}

// BenchmarkNodeWorkers is BenchmarkCall with 64 callers on four sessions, with and without a limit
// of the node.
func BenchmarkNodeWorkers(b *testing.B) {
	for name, opts := range map[string][]asterisque.Option{"unbounded": nil, "bounded=4": {asterisque.WithWorkers(asterisque.Workers{Node: 4})}} {
		b.Run(name, func(b *testing.B) {
			here, there := asterisque.NewNode(), asterisque.NewNode(append(opts, asterisque.WithService(testkit.EchoService()))...)
			b.Cleanup(func() { here.Close(); there.Close() })
			var sessions []*asterisque.Session
			for range 4 {
				s, _ := testkit.ConnectNodes(b, here, there)
				sessions = append(sessions, s)
			}
			var next atomic.Uint32
			text := strings.Repeat("*", 64)
			callbench.InParallel(b, 64, func() error {
				_, err := testkit.Echo.Call(context.Background(), sessions[next.Add(1)%4], text)
				return err
			})
		})
	}
}

// TestFunctionBounds_Allocs bounds the allocations that keys and gates add to a call.
func TestFunctionBounds_Allocs(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	allocs := func(opts ...asterisque.HandlerOption) float64 {
		svc := asterisque.NewService()
		testkit.Echo.Handle(svc, func(_ context.Context, s string) (string, error) { return s, nil }, opts...)
		dialled, _ := testkit.Connect(t, svc)
		call := func() {
			_, err := testkit.Echo.Call(testkit.Background, dialled, "0123456789")
			require.NoError(t, err)
		}
		for range 100 { // until few calls are timed
			call()
		}
		return testing.AllocsPerRun(1000, call)
	}
	plain := allocs()
	require.LessOrEqual(t, allocs(asterisque.WithConcurrency(4)), plain, "a gate is free")
	require.LessOrEqual(t, allocs(asterisque.WithInline()), plain)
	require.LessOrEqual(t, allocs(asterisque.WithKey(func(p []byte) int { return len(p) })), plain+2, "a turn, and where it is")
}
