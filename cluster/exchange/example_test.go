package exchange_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster/exchange"
	"github.com/asterisque-go/asterisque/cluster/exchange/agent"
	"github.com/asterisque-go/asterisque/wire"
)

// Two nodes that only dial out call each other by name.
func Example() {
	price := asterisque.Func[string, int](10, "price") // what nodes of the name "prices" offer
	ctx := context.Background()

	// An exchange that all nodes may use.
	x, err := exchange.New(exchange.Config{Policy: []exchange.Rule{{From: exchange.Any, To: exchange.Any}}})
	if err != nil {
		log.Panic(err)
	}
	defer x.Close()
	ln, err := wire.Listen(ctx, "tcp://127.0.0.1:0", wire.Options{})
	if err != nil {
		log.Panic(err)
	}
	go x.Serve(ctx, ln) // ends with the exchange

	svc := asterisque.NewService()
	price.Handle(svc, func(_ context.Context, article string) (int, error) { return len(article), nil })
	prices, err := agent.Join(ctx, agent.Config{Exchange: []string{ln.URL()}, Name: "prices", Service: svc})
	if err != nil {
		log.Panic(err)
	}
	defer prices.Close()

	shop, err := agent.Join(ctx, agent.Config{Exchange: []string{ln.URL()}, Name: "shop"})
	if err != nil {
		log.Panic(err)
	}
	defer shop.Close()
	p, err := shop.Caller(ctx, "prices")
	if err != nil {
		log.Panic(err)
	}
	defer p.Close()
	cents, err := price.Call(ctx, p, "pencil")
	fmt.Println(cents, err)
	// Output: 6 <nil>
}
