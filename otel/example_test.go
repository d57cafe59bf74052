package asterisqueotel_test

import (
	"context"
	"fmt"
	"log"
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/asterisque-go/asterisque"
	asterisqueotel "github.com/asterisque-go/asterisque/otel"
	"github.com/asterisque-go/asterisque/wire"
)

// A call with a call back in its handler is one trace, with each span the child of the one before.
func ExampleInterceptor() {
	ctx := context.Background()
	spans := tracetest.NewInMemoryExporter() // in place of the exporter of a program
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))
	defer provider.Shutdown(ctx)
	// both sides belong to the example, without proven identities
	everybody := func(asterisque.Peer) bool { return true }
	traced := asterisqueotel.Interceptor(asterisqueotel.WithTracerProvider(provider), asterisqueotel.WithTrust(everybody))

	greet, surround := asterisque.Func[string, string](10, "greet"), asterisque.Func[string, string](11, "surround")
	server, client := asterisque.NewService(), asterisque.NewService()
	greet.Handle(server, func(ctx context.Context, name string) (string, error) {
		star, err := surround.Call(ctx, asterisque.SessionOf(ctx), name)
		return "hello, " + star, err
	})
	surround.Handle(client, func(_ context.Context, s string) (string, error) { return "*" + s + "*", nil })
	there := asterisque.NewNode(asterisque.WithService(server), asterisque.WithOutboundInterceptors(traced), asterisque.WithInboundInterceptors(traced))
	here := asterisque.NewNode(asterisque.WithService(client), asterisque.WithOutboundInterceptors(traced), asterisque.WithInboundInterceptors(traced))
	near, far := wire.Pipe()
	go there.Accept(ctx, far)
	sess, err := here.Attach(ctx, near)
	if err != nil {
		log.Panic(err)
	}
	fmt.Println(greet.Call(ctx, sess, "asterisk"))
	here.Shutdown(ctx)
	there.Shutdown(ctx) // the handlers have returned

	all := spans.GetSpans()
	slices.SortFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	for i, s := range all {
		fmt.Println(s.SpanKind, s.Name, i == 0 || s.Parent.SpanID() == all[i-1].SpanContext.SpanID())
	}
	// Output:
	// hello, *asterisk* <nil>
	// client greet true
	// server greet true
	// client surround true
	// server surround true
}
