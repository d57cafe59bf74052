package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/asterisque-go/asterisque/cluster"
	"github.com/asterisque-go/asterisque/cluster/broker"
	"github.com/asterisque-go/asterisque/cluster/test/natstest"
)

// Number of nodes that join at once: go test -run Scale -v -nodes 1000
var (
	most  = flag.Int("nodes", 60, "how many nodes TestScale joins at most")
	known = flag.Int("known", 5, "how many of these have the name that all of them have in use")
)

// crowd are nodes. Some are servers, and all nodes watch the name of these.
type crowd struct {
	*testing.T
	broker  *broker.Broker
	servers int
	all     []*cluster.Cluster
	begun   time.Time // of the last join

	seen     []context.CancelFunc // end the watches
	watching sync.WaitGroup
}

// join joins n nodes at once, and returns when each knows all servers.
func (c *crowd) join(n int) {
	c.all, c.begun = make([]*cluster.Cluster, n), time.Now().Truncate(time.Second)
	var joining sync.WaitGroup
	for i := range n {
		joining.Go(func() { // ends with Join
			name := "agents"
			if i < c.servers {
				name = "orders"
			}
			cfg := config(c.broker, name, fmt.Sprintf("node-%d", i))
			cfg.Addresses = []string{"tcp://10.0.0.1:5330"}
			var err error
			if c.all[i], err = cluster.Join(context.Background(), cfg); err != nil {
				c.Errorf("node %d: %v", i, err)
			}
		})
	}
	joining.Wait()
	require.False(c, c.Failed())
}

// watch makes each node watch the servers.
func (c *crowd) watch() {
	for _, node := range c.all {
		ctx, leave := context.WithCancel(context.Background())
		c.seen = append(c.seen, leave)
		c.watching.Go(func() { // ends with ctx
			for range node.Watch(ctx, "orders") {
			}
		})
	}
}

// agree waits until each node sees the present servers.
func (c *crowd) agree() {
	for _, node := range c.all {
		require.Eventually(c, func() bool {
			members, err := node.Members(context.Background(), "orders")
			return err == nil && len(members) == c.servers && !slices.ContainsFunc(members, func(m cluster.Member) bool {
				return m.Since.Before(c.begun)
			})
		}, 2*time.Minute, time.Millisecond)
	}
}

// end ends all nodes at once, like a crash or gracefully.
func (c *crowd) end(how func(node *cluster.Cluster)) {
	for _, leave := range c.seen {
		leave()
	}
	c.seen = nil
	c.watching.Wait()
	var ending sync.WaitGroup
	for _, node := range c.all {
		ending.Go(func() { how(node) }) // ends with Close
	}
	ending.Wait()
}

// cost is the traffic of a NATS server.
type cost struct{ messages, bytes int64 }

// of returns the cost of f, and logs it.
func (c *crowd) of(what string, f func()) cost {
	before, begin := c.varz(), time.Now()
	f()
	took, after := time.Since(begin), c.varz()
	spent := cost{after.messages - before.messages, after.bytes - before.bytes}
	n := int64(len(c.all))
	c.Logf("%-28s %5d nodes: %7d messages (%d a node), %8d bytes (%d a node), %v", what, n, spent.messages, spent.messages/n, spent.bytes, spent.bytes/n, took.Round(time.Millisecond))
	return spent
}

func (c *crowd) varz() cost {
	v, err := c.broker.Server().Varz(&server.VarzOptions{})
	require.NoError(c, err)
	return cost{v.InMsgs + v.OutMsgs, v.InBytes + v.OutBytes}
}

// TestScale joins increasing numbers of nodes at once, keeps them for a while, and restarts them at
// once. The cost of each node is constant.
func TestScale(t *testing.T) {
	t.Parallel()
	natstest.Bubble(t, func(t *testing.T) {
		for what, each := range messagesPerNode(t) {
			require.Less(t, each[len(each)-1], 2*each[0]+5, "messages for each node, with ever more nodes: %s: %v", what, each)
		}
	})
}

func messagesPerNode(t *testing.T) map[string][]float64 {
	perNode := make(map[string][]float64)
	for n := *most / 4; n <= *most; n *= 2 {
		c := &crowd{T: t, broker: natstest.StartServer(t, broker.Config{}), servers: *known}
		note := func(what string, f func()) {
			perNode[what] = append(perNode[what], float64(c.of(what, f).messages)/float64(n))
		}
		arrive := func() { c.join(n); c.watch(); c.agree() }
		note("join at once", arrive)
		note("one time to live", c.live)
		note("restart at once", func() { c.end(vanish); arrive() })
		note("leave at once", func() { c.end(func(node *cluster.Cluster) { node.Close() }) })
	}
	return perNode
}

// live waits for the time after which a silent node counts as lost.
func (c *crowd) live() {
	select {
	case <-time.After(lifeTime):
	case <-c.Context().Done():
	}
}
