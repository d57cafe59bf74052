package pool_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asterisque-go/asterisque"
	"github.com/asterisque-go/asterisque/pool"
	"github.com/asterisque-go/asterisque/wire"
)

// The README shows the body of this example; a test keeps the two the same.
func Example() {
	report := asterisque.Func[string, string](10, "report") // what servers offer
	load := asterisque.Func[string, int](11, "load")        // what agents offer
	ctx := context.Background()

	// A server takes a report, and calls the agent back, which it could not dial.
	servers := listen(3, func(svc *asterisque.Service) {
		report.Handle(svc, func(ctx context.Context, agent string) (string, error) {
			percent, err := load.Call(ctx, asterisque.SessionOf(ctx), "cpu")
			return fmt.Sprintf("%s is busy at %d %%", agent, percent), err
		})
		svc.Health(asterisque.NewHealth())
	})
	defer servers.Close()

	// An agent keeps a session with each server. Its calls go to one that is well and not
	// restarting, and wait while there is none.
	agent := asterisque.NewService()
	load.Handle(agent, func(context.Context, string) (int, error) { return 42, nil })
	node := asterisque.NewNode(asterisque.WithService(agent))
	defer node.Close()
	p, err := pool.New(ctx, node, pool.Fixed(servers.urls...), pool.Config{Health: []string{""}})
	if err != nil {
		log.Panic(err)
	}
	defer p.Close()
	answer, err := report.Call(ctx, p, "agent-07")
	fmt.Println(answer, err)
	// Output: agent-07 is busy at 42 % <nil>
}

// listening are the servers of an example.
type listening struct {
	urls  []string
	nodes []*asterisque.Node
}

// listen starts n servers, each with a service that offer fills.
func listen(n int, offer func(*asterisque.Service)) *listening {
	l := new(listening)
	for range n {
		svc := asterisque.NewService()
		offer(svc)
		node := asterisque.NewNode(asterisque.WithService(svc))
		ln, err := wire.Listen(background, "tcp://127.0.0.1:0", wire.Options{})
		if err != nil {
			log.Panic(err)
		}
		go node.Serve(background, ln) // ends with the node
		l.urls, l.nodes = append(l.urls, ln.URL()), append(l.nodes, node)
	}
	return l
}

func (l *listening) Close() {
	for _, node := range l.nodes {
		node.Close()
	}
}
