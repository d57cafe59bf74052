package main

import (
	"context"

	"github.com/asterisque-go/asterisque/cluster/broker"
)

// runNATS runs a NATS server until ctx ends.
func runNATS(ctx context.Context, o *options, sc *screen) error {
	b, err := broker.Start(broker.Config{Addr: o.listen, Dir: o.dir, Name: o.id, At: o.at, Routes: o.routeList()})
	if err != nil {
		return err
	}
	sc.say("NATS is at %s", b.URL())
	<-ctx.Done()
	return b.Close()
}
