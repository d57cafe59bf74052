package cluster_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
)

// startNATS starts the NATS server of the examples.
func startNATS() *broker.Broker {
	b, err := broker.Start(broker.Config{})
	if err != nil {
		log.Panic(err)
	}
	return b
}

// The README shows the body of this example; a test keeps the two the same.
func Example() {
	price := asterisque.Func[string, int](10, "price") // what nodes of the name "prices" offer
	ctx := context.Background()
	nats := startNATS() // or NATS servers of yours
	defer nats.Close()

	// A node joins with a name, and says where it listens. Without Listen it is reached as well,
	// through NATS.
	svc := asterisque.NewService()
	price.Handle(svc, func(_ context.Context, article string) (int, error) { return len(article), nil })
	prices, err := cluster.Join(ctx, cluster.Config{
		NATS: nats.URL(), Name: "prices", Service: svc, Listen: []string{"tcp://127.0.0.1:0"},
	})
	if err != nil {
		log.Panic(err)
	}
	defer prices.Close()

	// Another node calls the present nodes of that name, as a Pool does.
	shop, err := cluster.Join(ctx, cluster.Config{NATS: nats.URL(), Name: "shop"})
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

// One of several nodes holds a key, does its work, and receives the calls for it. When that node
// ends, another one takes over.
func Example_awaitClaim() {
	nats := startNATS()
	defer nats.Close()
	ctx := context.Background()
	next := asterisque.Func[struct{}, string](10, "next order")
	var nodes []*cluster.Cluster
	for _, id := range []string{"a", "b"} {
		svc := asterisque.NewService()
		next.Handle(svc, func(context.Context, struct{}) (string, error) { return "from " + id, nil })
		node, err := cluster.Join(ctx, cluster.Config{NATS: nats.URL(), Name: "numbers", ID: id, Service: svc})
		if err != nil {
			log.Panic(err)
		}
		defer node.Close()
		nodes = append(nodes, node)
	}

	claim, err := nodes[0].AwaitClaim(ctx, "order-numbers")
	if err != nil {
		log.Panic(err)
	}
	holder := nodes[1].Holder("order-numbers")
	fmt.Println(next.Call(ctx, holder, struct{}{}))

	claim.Release(ctx)
	fmt.Println(claim.Err())
	if _, err = nodes[1].AwaitClaim(ctx, "order-numbers"); err != nil {
		log.Panic(err)
	}
	fmt.Println(next.Call(ctx, holder, struct{}{}))
	// Output:
	// from a <nil>
	// cluster: the claim was released by this node
	// from b <nil>
}

// The nodes of a name, with their changes.
func Example_watch() {
	nats := startNATS()
	defer nats.Close()
	ctx := context.Background()
	here, err := cluster.Join(ctx, cluster.Config{NATS: nats.URL()})
	if err != nil {
		log.Panic(err)
	}
	defer here.Close()
	node, err := cluster.Join(ctx, cluster.Config{NATS: nats.URL(), Name: "printers", ID: "hall", Region: "eu"})
	if err != nil {
		log.Panic(err)
	}
	for change, err := range here.Watch(ctx, "printers") {
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(change.Member, change.Kind, change.Member.Region)
		if change.Kind == cluster.Left {
			break
		}
		node.Close()
	}
	// Output:
	// printers hall joined eu
	// printers hall left eu
}
