package exchange_test

import (
	"context"
	"flag"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
)

var measure = flag.Bool("measure", false, "measure what relayed sessions cost")

// inUse returns the memory of the program, in bytes.
func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestTheMemoryOfIdleRelayedSessions says what a relayed session costs, with both nodes and their
// sessions in this program, beside what direct sessions cost.
func TestTheMemoryOfIdleRelayedSessions(t *testing.T) {
	if !*measure {
		t.Skip("with -measure only")
	}
	const sessions = 1000
	_, url := started(t, exchange.Config{Policy: everybody, PerNode: 2000})
	node := asterisque.NewNode(asterisque.WithLogger(silent), asterisque.WithService(service("b", nil)))
	t.Cleanup(func() { node.Close() })
	measureSessions(t, "direct", sessions, func() asterisque.Caller { return dialled(t, node) })
	join(t, agent.Config{Exchange: []string{url}, Name: "orders", ID: "b", Sessions: 2000})
	var a *agent.Agent
	begun := 0
	measureSessions(t, "relayed", sessions, func() asterisque.Caller {
		if begun%50 == 0 { // a node watches 64 names at most
			a = joined(t, url, "", "")
		}
		begun++
		return callerOf(t, a, "orders")
	})
}

func measureSessions(t *testing.T, what string, n int, begin func() asterisque.Caller) {
	ask(t, begin())
	before, goroutines := inUse(), runtime.NumGoroutine()
	var all []asterisque.Caller
	for range n {
		c := begin()
		ask(t, c)
		all = append(all, c)
	}
	t.Logf("%s: %d bytes and %.1f goroutines each", what, (inUse()-before)/int64(n), float64(runtime.NumGoroutine()-goroutines)/float64(n))
	runtime.KeepAlive(all)
}

// BenchmarkStream compares a stream through the exchange with a direct one, over TCP.
func BenchmarkStream(b *testing.B) {
	taking := asterisque.Stream[struct{}, []byte, []byte, int](8, "taking")
	svc := asterisque.NewService()
	taking.Handle(svc, func(ctx context.Context, _ struct{}, p *asterisque.Pipe[[]byte, []byte]) (n int, err error) {
		for v, err := range p.All(ctx) {
			if err != nil {
				return n, err
			}
			n += len(v)
		}
		return n, nil
	})
	_, url := started(b, exchange.Config{Policy: everybody})
	join(b, agent.Config{Exchange: []string{url}, Name: "orders", ID: "b", Service: svc})
	relayed := callerOf(b, joined(b, url, "shop", "a"), "orders")
	node := asterisque.NewNode(asterisque.WithService(svc), asterisque.WithLogger(silent))
	b.Cleanup(func() { node.Close() })
	direct := dialled(b, node)
	for how, on := range map[string]asterisque.Caller{"direct": direct, "relayed": relayed} {
		b.Run(how, func(b *testing.B) {
			block := make([]byte, 32<<10)
			b.SetBytes(int64(len(block)))
			b.ReportAllocs()
			call, err := taking.Open(b.Context(), on, struct{}{})
			require.NoError(b, err)
			for b.Loop() {
				require.NoError(b, call.Send(b.Context(), block))
			}
			require.NoError(b, call.CloseSend())
			_, err = call.Result(b.Context())
			require.NoError(b, err)
		})
	}
}

// BenchmarkCall compares a call through the exchange with a direct one.
func BenchmarkCall(b *testing.B) {
	_, url := started(b, exchange.Config{Policy: everybody})
	joined(b, url, "orders", "b")
	relayed := callerOf(b, joined(b, url, "shop", "a"), "orders")
	node := asterisque.NewNode(asterisque.WithService(service("b", nil)), asterisque.WithLogger(silent))
	b.Cleanup(func() { node.Close() })
	for how, on := range map[string]asterisque.Caller{"direct": dialled(b, node), "relayed": relayed} {
		b.Run(how, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, err := who.Call(b.Context(), on, struct{}{})
				require.NoError(b, err)
			}
		})
	}
}
