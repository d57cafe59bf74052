package cluster_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asterisque-go/asterisque/cluster"
)

// One of several nodes holds a key and does its work. When that node ends, another one takes over.
func ExampleCluster_AwaitClaim() {
	ctx := context.Background()
	node, err := cluster.Join(ctx, cluster.Config{NATS: "nats://10.0.0.1:4222", Name: "numbers"})
	if err != nil {
		log.Panic(err)
	}
	defer node.Close()
	claim, err := node.AwaitClaim(ctx, "order-numbers")
	if err != nil {
		log.Panic(err)
	}
	defer claim.Release(ctx)
	<-claim.Done()
	fmt.Println(claim.Err())
}

// The nodes of a name, with their changes.
func ExampleCluster_Watch() {
	ctx := context.Background()
	node, err := cluster.Join(ctx, cluster.Config{NATS: "nats://10.0.0.1:4222"})
	if err != nil {
		log.Panic(err)
	}
	defer node.Close()
	for change, err := range node.Watch(ctx, "printers") {
		if err != nil {
			log.Panic(err)
		}
		fmt.Println(change.Member, change.Kind) // printers hall joined
	}
}
