package cluster_test

import (
	"context"
	"fmt"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
)

// A node that only calls finds the ones of a name, and calls whichever has least to do.
func Example() {
	ctx := context.Background()
	nats, err := broker.Start(broker.Config{}) // or a NATS cluster of yours
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nats.Close()

	greet := asterisque.Func[string, string](1, "greet")
	svc := asterisque.NewService()
	greet.Handle(svc, func(_ context.Context, name string) (string, error) { return "hello, " + name, nil })
	server, err := cluster.Join(ctx, cluster.Config{NATS: nats.URL(), Name: "greeter", Service: svc, Listen: []string{"tcp://127.0.0.1:0"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	client, err := cluster.Join(ctx, cluster.Config{NATS: nats.URL()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	greeter, err := client.Caller(ctx, "greeter")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer greeter.Close()
	fmt.Println(greet.Call(ctx, greeter, "world"))
	// Output: hello, world <nil>
}
